package bounce

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/cputime"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mailtest"
	"github.com/postroom/postroom/internal/mail/mime"
)

// readReport reads a message that has LF line endings.
func readReport(t *testing.T, raw string) Report {
	t.Helper()
	rep, err := Read(strings.NewReader(strings.ReplaceAll(raw, "\n", "\r\n")), false, mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// inShort returns a report as one line per recipient.
func inShort(rep Report) (lines []string) {
	for _, r := range rep.Recipients {
		kind := string(r.Outcome)
		if r.Outcome == Bounced {
			kind = map[bool]string{true: "hard", false: "soft"}[r.Hard]
		}
		lines = append(lines, strings.TrimSpace(strings.Join([]string{r.Email, kind, string(r.Reason), r.Status}, " ")))
	}
	return lines
}

// TestFreeFormBounces reads bounces in a server's own words.
func TestFreeFormBounces(t *testing.T) {
	t.Parallel()
	const original = "\nReceived: from a.example by b.example; Mon, 2 Mar 2026 10:00:00 +0000\nMessage-ID: <first@a.example>\n" +
		"From: me@a.example\nTo: you@c.example\nSubject: Hello\n\nHello!\n"
	tests := []struct {
		name, from, subject, text string
		want                      []string
	}{
		{
			"qmail, two recipients", "MAILER-DAEMON@b.example", "failure notice",
			"Hi. This is the qmail-send program at b.example.\nI'm afraid I wasn't able to deliver your message to the following addresses.\n" +
				"This is a permanent error; I've given up. Sorry it didn't work out.\n\n<you@c.example>:\n198.51.100.7 does not like recipient.\n" +
				"Remote host said: 550 5.1.1 <you@c.example>: Recipient address rejected: User unknown\nGiving up on 198.51.100.7.\n\n" +
				"<she@d.example>:\nSorry, I wasn't able to establish an SMTP connection. (#4.4.1)\n" +
				"I'm not going to try again; this message has been in the queue too long.\n\n--- Below this line is a copy of the message.\n",
			[]string{"you@c.example hard no_mailbox 5.1.1", "she@d.example soft expired 4.4.1"},
		},
		{
			"exim, no such domain", "Mailer-Daemon@b.example", "Mail delivery failed: returning message to sender",
			"This message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of its\n" +
				"recipients. This is a permanent error. The following address(es) failed:\n\n  you@c.example\n    Unrouteable address\n\n" +
				"------ This is a copy of the message, including all the headers. ------\n",
			[]string{"you@c.example hard no_domain"},
		},
		{
			"exim, the message is too large", "Mailer-Daemon@b.example", "Mail delivery failed: returning message to sender",
			"A message that you sent could not be delivered to one or more of its\nrecipients. This is a permanent error. The following address(es) failed:\n\n" +
				"  you@c.example\n    SMTP error from remote mail server after MAIL FROM:<me@a.example> SIZE=30000000:\n" +
				"    552 5.3.4 Message size exceeds fixed limit\n\n------ This is a copy of the message's headers. ------\n",
			[]string{"you@c.example soft too_large 5.3.4"},
		},
		{
			"postfix without a status part", "MAILER-DAEMON@b.example", "Undelivered Mail Returned to Sender",
			"This is the mail system at host b.example.\n\nI'm sorry to have to inform you that your message could not\n" +
				"be delivered to one or more recipients. It's attached below.\n\n<you@c.example>: host mx.c.example[198.51.100.7] said: 550 No such user\n" +
				"    here (in reply to RCPT TO command)\n",
			[]string{"you@c.example hard no_mailbox"},
		},
		{
			"the content refused with a false reason", "MAILER-DAEMON@b.example", "Undelivered Mail Returned to Sender",
			"I'm sorry to have to inform you that your message could not\nbe delivered to one or more recipients.\n\n" +
				"<you@c.example>: host mx.c.example[198.51.100.7] said: 550 Unknown user\n    you@c.example (in reply to end of DATA command)\n",
			[]string{"you@c.example soft refused"},
		},
		{
			"sendmail, a transcript alone", "MAILER-DAEMON@b.example", "Returned mail: see transcript for details",
			"   ----- The following addresses had permanent fatal errors -----\n<you@c.example>\n    (reason: 552 5.2.2 <you@c.example>... Mailbox full)\n\n" +
				"   ----- Transcript of session follows -----\n... while talking to mx.c.example.:\n>>> RCPT To:<you@c.example>\n" +
				"<<< 552 5.2.2 <you@c.example>... Mailbox full\n",
			[]string{"you@c.example soft mailbox_full 5.2.2"},
		},
		{
			"Exchange, in words", "postmaster@b.example", "Undeliverable: Hello",
			"Delivery has failed to these recipients or groups:\n\nyou@c.example (you@c.example)\nThe e-mail address you entered couldn't be found. " +
				"Please check the recipient's e-mail address and try to resend the message.\n",
			[]string{"you@c.example hard no_mailbox"},
		},
		{
			"Domino", "MAILER-DAEMON@b.example", "DELIVERY FAILURE: User you (you@c.example) not listed in Domino Directory",
			"Your message\n\n  Subject: Hello\n\nwas not delivered to:\n\n  you@c.example\n\nbecause:\n\n  User you (you@c.example) not listed in Domino Directory\n",
			[]string{"you@c.example hard no_mailbox"},
		},
		{
			"Gmail, quota", "mailer-daemon@googlemail.com", "Delivery Status Notification (Failure)",
			"** Message not delivered **\n\nYour message couldn't be delivered to you@c.example because the recipient's inbox is full.\n\nThe response from the remote server was:\n\n" +
				"552 5.2.2 The email account that you tried to reach is over quota.\n",
			[]string{"you@c.example soft mailbox_full 5.2.2"},
		},
		{
			"German", "mailer-daemon@b.example", "Unzustellbar: Hello",
			"Ihre Nachricht konnte nicht zugestellt werden:\n\n<you@c.example>: Empfänger unbekannt\n\n--- The header of the original message is following. ---\n",
			[]string{"you@c.example hard no_mailbox"},
		},
		{
			"Japanese", "postmaster@b.example", "メール送信できません",
			"次のあて先へのメッセージはエラーのため送信できませんでした。\n\n<you@c.example>: 550 5.2.2 容量を超えています\n",
			[]string{"you@c.example soft mailbox_full 5.2.2"},
		},
		{
			"Russian", "mailer-daemon@b.example", "Недоставленное письмо",
			"Ваше письмо не может быть доставлено получателю:\n\n  you@c.example\n    пользователь не найден\n",
			[]string{"you@c.example hard no_mailbox"},
		},
		{
			"a warning", "MAILER-DAEMON@b.example", "Warning: could not send message for past 4 hours",
			"    **********************************************\n    **      THIS IS A WARNING MESSAGE ONLY      **\n    **  YOU DO NOT NEED TO RESEND YOUR MESSAGE  **\n" +
				"    **********************************************\n\n   ----- The following addresses had transient non-fatal errors -----\n<you@c.example>\n\n" +
				"   ----- Transcript of session follows -----\n<you@c.example>... Deferred: Connection timed out with mx.c.example.\n",
			[]string{"you@c.example delayed expired"},
		},
		{
			"listed for spam", "MAILER-DAEMON@b.example", "Mail delivery failed",
			"The following address failed:\n\n  <you@c.example>: 554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org\n",
			[]string{"you@c.example soft blocked 5.7.1"},
		},
		{
			"no DMARC", "MAILER-DAEMON@b.example", "Mail delivery failed",
			"The following address failed:\n\n  <you@c.example>: 550-5.7.26 Unauthenticated email from a.example is not accepted due to\n550-5.7.26 domain's DMARC policy.\n",
			[]string{"you@c.example soft not_authenticated 5.7.26"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rep := readReport(t, "Return-Path: <>\nFrom: Mail Delivery System <"+tt.from+">\nTo: me@a.example\nSubject: "+tt.subject+
				"\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n"+tt.text+original)
			if diff := cmp.Diff(tt.want, inShort(rep)); diff != "" {
				t.Errorf("(-want +got)\n%s\n%+v", diff, rep)
			}
			if rep.OriginalID != "<first@a.example>" {
				t.Errorf("original %q", rep.OriginalID)
			}
		})
	}
}

// TestOrdinaryMailIsNoReport reads messages that resemble reports.
func TestOrdinaryMailIsNoReport(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, header, text string }{
		{
			"a parcel", "Return-Path: <>\nFrom: DHL <noreply@parcel.example>\nSubject: Delivery failed: your parcel\n",
			"Your parcel could not be delivered to\nann@a.example\nPlease call us.\n",
		},
		{
			"a question about a bounce", "From: Bob <bob@b.example>\nSubject: Undelivered Mail Returned to Sender?\n",
			"Hi, I got this:\n\n550 5.1.1 <you@c.example>: Recipient address rejected: User unknown\n\nWhat does it mean?\n",
		},
		{
			"a bounce passed on by a person", "From: Bob <bob@b.example>\nSubject: Fwd: Undelivered Mail Returned to Sender\n",
			"See below.\n\n---------- Forwarded message ----------\nFrom: MAILER-DAEMON@c.example\n\n<you@c.example>: user unknown\n",
		},
		{"a bill from the postmaster", "From: Postmaster <postmaster@host.example>\nSubject: Your invoice\n", "Dear bob@b.example,\nplease pay 550 EUR.\n"},
		{"a message with a code", "Return-Path: <>\nFrom: no-reply@shop.example\nSubject: Your code is 550511\n", "Use 550511 for you@c.example.\n"},
		{"an out of office note", "Return-Path: <>\nFrom: Ann <ann@c.example>\nSubject: Bob has a question\n", "I am on holiday. Write to bob@c.example.\n"},
		{
			"a mailing list about mail", "Precedence: list\nList-Id: <qmail.list.example>\nFrom: Dan <dan@c.example>\nSubject: delivery failure with qmail\n",
			"I see: <you@c.example>: Sorry, no mailbox here by that name. (#5.1.1)\n--- Below this line is a copy of the message.\n",
		},
		{"a message about full mailboxes", "From: IT <it@c.example>\nSubject: Mailbox full\n", "you@c.example\nYour mailbox is full. Delete something.\n"},
		{
			"a read receipt", "Return-Path: <>\nFrom: Bob <bob@b.example>\nSubject: Read: Hello\nContent-Type: multipart/report; report-type=disposition-notification; boundary=x\n",
			"--x\n\nThe message you sent could not be delivered before, and was read by\nbob@b.example\n--x\nContent-Type: message/disposition-notification\n\nFinal-Recipient: rfc822; bob@b.example\nDisposition: manual-action/MDN-sent-manually; displayed\n--x--\n",
		},
		{
			"a report of TLS", "From: postmaster@b.example\nSubject: Report Domain: a.example Submitter: b.example\nContent-Type: multipart/report; report-type=tlsrpt; boundary=x\n",
			"--x\n\n550 sessions failed, mail was not delivered to ann@a.example\n--x--\n",
		},
		{"a list of quarantined messages", "From: Postmaster <postmaster@b.example>\nSubject: Quarantine summary\n", "These messages were not delivered to you:\n\neve@spam.example\n  Buy now\n"},
		{
			"a reply about a bounce", "Return-Path: <>\nFrom: Bob <bob@b.example>\nSubject: RE: Undelivered Mail Returned to Sender\n",
			"Hi, I got this:\n\n<you@c.example>: 550 5.1.1 User unknown\n\nMy other address works.\n",
		},
		{
			"a warning about the reader's own mailbox", "Return-Path: <>\nFrom: postmaster@a.example\nSubject: Your mailbox is almost full\n",
			"Your mailbox ann@a.example has reached 95% of its quota.\n",
		},
		{"an empty message", "Return-Path: <>\nFrom: MAILER-DAEMON@c.example\nSubject: failure notice\n", ""},
		{"a message without a From", "Subject: failure notice\n", "you@c.example: user unknown\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if rep := readReport(t, tt.header+"To: ann@a.example\n\n"+tt.text); len(rep.Recipients) > 0 {
				t.Errorf("read as a report: %+v", rep.Recipients)
			}
		})
	}
}

// statusMail is a delivery status notification with these fields.
func statusMail(human, status, rest string) string {
	return "From: MAILER-DAEMON@b.example\nTo: me@a.example\nSubject: Returned\nMIME-Version: 1.0\n" +
		"Content-Type: multipart/report; report-type=delivery-status; boundary=x\n\n--x\n\n" + human + "\n--x\nContent-Type: message/delivery-status\n\n" + status +
		"\n--x\n" + rest + "\n--x--\n"
}

func TestDeliveryStatus(t *testing.T) {
	t.Parallel()
	const original = "Content-Type: text/rfc822-headers\n\nMessage-ID: <first@a.example>\nTo: you@c.example\n"
	tests := []struct {
		name, human, status string
		want                []string
	}{
		{
			"three outcomes", "", "Reporting-MTA: dns; b.example\n\nFinal-Recipient: rfc822; one@c.example\nAction: failed\nStatus: 5.1.1\n" +
				"Diagnostic-Code: smtp; 550 5.1.1 unknown\n\nFinal-Recipient: rfc822; two@c.example\nAction: delayed\nStatus: 4.4.1\n\n" +
				"Final-Recipient: rfc822; three@c.example\nAction: relayed\nStatus: 2.1.9\n",
			[]string{"one@c.example hard no_mailbox 5.1.1", "two@c.example delayed network 4.4.1", "three@c.example delivered  2.1.9"},
		},
		{
			"no empty lines between", "", "Final-Recipient: rfc822; one@c.example\nAction: failed\nStatus: 5.2.2\nFinal-Recipient: rfc822; two@c.example\nAction: failed\nStatus: 5.1.1\n",
			[]string{"one@c.example soft mailbox_full 5.2.2", "two@c.example hard no_mailbox 5.1.1"},
		},
		{
			"an address outside ASCII, RFC 6533", "", "Final-Recipient: utf-8; j\\x{FC}rgen@c.example\nAction: failed\nStatus: 5.1.1\n",
			[]string{"jürgen@c.example hard no_mailbox 5.1.1"},
		},
		{"a program instead of an address", "  you@c.example\n    procmail failed\n", "Final-Recipient: rfc822; |/usr/bin/procmail -t\nOriginal-Recipient: rfc822;you@c.example\n" +
			"Action: failed\nStatus: 5.3.0\nDiagnostic-Code: x-unix; procmail: user unknown\n", []string{"you@c.example soft system 5.3.0"}},
		{
			"the words are better than the status", "", "Final-Recipient: rfc822; you@c.example\nAction: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 550 5.7.1 blocked by policy\n",
			[]string{"you@c.example soft blocked 5.7.1"},
		},
		{
			"the reason is in the text alone", "<you@c.example>: 550 5.7.25 no PTR record\n", "Final-Recipient: rfc822; you@c.example\nAction: failed\nStatus: 5.0.0\n",
			[]string{"you@c.example soft not_authenticated 5.7.25"},
		},
		{"no action", "", "Final-Recipient: rfc822; you@c.example\nStatus: 5.1.1\n", []string{"you@c.example hard no_mailbox 5.1.1"}},
		{"no Status", "", "Final-Recipient: rfc822; you@c.example\nAction: failed\n", []string{"you@c.example soft"}},
		{"no address", "", "Final-Recipient: rfc822;\nAction: failed\nStatus: 5.1.1\n", []string{"you@c.example hard no_mailbox 5.1.1"}}, // of the original
		{"an IP address is not a status", "", "Final-Recipient: rfc822; you@c.example\nAction: failed\nDiagnostic-Code: smtp; 554 5.2.0.1 [4.1.1.7] no\n", []string{"you@c.example soft"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rep := readReport(t, statusMail(tt.human, tt.status, original))
			if diff := cmp.Diff(tt.want, inShort(rep)); diff != "" {
				t.Errorf("(-want +got)\n%s\n%+v", diff, rep)
			}
			if rep.OriginalID != "<first@a.example>" {
				t.Errorf("original %q", rep.OriginalID)
			}
		})
	}
}

// A report that begins with the returned message has no text of its own: the
// text of the original is not a reason.
func TestReportThatBeginsWithTheOriginal(t *testing.T) {
	t.Parallel()
	raw := "From: MAILER-DAEMON@c.example\nSubject: Undelivered Mail\nX-Failed-Recipients: you@c.example\n\n" +
		"Received: from a.example with 550 5.1.1 no such user\nMessage-ID: <first@a.example>\nFrom: me@a.example\nTo: you@c.example\nSubject: Hi\n\nHello.\n"
	rep := readReport(t, raw)
	if diff := cmp.Diff([]string{"you@c.example soft"}, inShort(rep)); diff != "" || rep.Recipients[0].Diagnostic != "" {
		t.Errorf("(-want +got)\n%s\n%+v", diff, rep)
	}
}

func TestComplaint(t *testing.T) {
	t.Parallel()
	mail := func(fields string) string {
		return "From: fbl@c.example\nContent-Type: multipart/report; report-type=feedback-report; boundary=x\n\n--x\n\nAbuse.\n--x\n" +
			"Content-Type: message/feedback-report\n\n" + fields + "\n--x\nContent-Type: message/rfc822\n\nMessage-ID: <first@a.example>\nTo: She <she@c.example>\n\nBuy!\n--x--\n"
	}
	tests := []struct {
		name, fields, kind string
		want               []string
	}{
		{"abuse", "Feedback-Type: abuse\nVersion: 1\nOriginal-Rcpt-To: <you@c.example>\n", "abuse", []string{"you@c.example complained"}},
		{"the address left out", "Feedback-Type: ABUSE\nVersion: 1\n", "abuse", []string{"she@c.example complained"}},
		{
			"two recipients", "Feedback-Type: fraud\nOriginal-Rcpt-To: a@c.example\nOriginal-Rcpt-To: b@c.example\nOriginal-Rcpt-To: A@c.example\n", "fraud",
			[]string{"a@c.example complained", "b@c.example complained"},
		},
		{"no kind", "Version: 1\n", "other", []string{"she@c.example complained"}},
		{"praise", "Feedback-Type: not-spam\nOriginal-Rcpt-To: a@c.example\n", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rep := readReport(t, mail(tt.fields))
			if diff := cmp.Diff(tt.want, inShort(rep)); diff != "" || rep.FeedbackType != tt.kind {
				t.Errorf("kind %q (-want +got)\n%s", rep.FeedbackType, diff)
			}
			if len(tt.want) > 0 && rep.OriginalID != "<first@a.example>" {
				t.Errorf("original %q", rep.OriginalID)
			}
			forwarded := readReport(t, "From: ann@c.example\nSubject: Fwd: Abuse\nContent-Type: multipart/mixed; boundary=y\n\n--y\n\nPlease look.\n--y\n"+
				"Content-Type: message/rfc822\n\n"+mail(tt.fields)+"--y--\n")
			if diff := cmp.Diff(tt.want, inShort(forwarded)); diff != "" || forwarded.OriginalID != rep.OriginalID {
				t.Errorf("forwarded, about %q (-want +got)\n%s", forwarded.OriginalID, diff)
			}
		})
	}
}

func TestAutoReply(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, header string
		want         bool
	}{
		{"RFC 3834", "Auto-Submitted: auto-replied\nSubject: Re: Hello\n", true},
		{"RFC 3834 with a parameter", "Auto-Submitted: auto-replied; owner-email=a@b.example\nSubject: Hello\n", true},
		{"Outlook", "Subject: Automatic reply: Hello\n", true},
		{"Outlook in German", "Subject: Automatische Antwort: Hello\n", true},
		{"Outlook in Japanese", "Subject: 自動返信: Hello\n", true},
		{"an old vacation program", "Precedence: auto_reply\nSubject: Hello\n", true},
		{"a header of its own", "X-Autoreply: yes\nSubject: Hello\n", true},
		{"a person", "Auto-Submitted: no\nSubject: Re: Hello\n", false},
		{"a list", "Precedence: bulk\nSubject: News\n", false},
		{"automated mail that is not a reply", "Auto-Submitted: auto-generated\nSubject: Your code\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rep := readReport(t, "From: You <you@c.example>\nIn-Reply-To: <first@a.example>\n"+tt.header+"\nI am away.\n")
			var want []string
			if tt.want {
				want = []string{"you@c.example auto_reply"}
			}
			if diff := cmp.Diff(want, inShort(rep)); diff != "" {
				t.Error(diff)
			}
			if tt.want && rep.OriginalID != "<first@a.example>" {
				t.Errorf("original %q", rep.OriginalID)
			}
		})
	}
}

// TestReportsAreBounded reads hostile reports within a time limit.
func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("<x@c.example>: 550 user@y z@w.example unknown 5.1.1 <<<<", 1<<16)
	var list strings.Builder
	for i := range 20_000 {
		list.WriteString("Final-Recipient: rfc822; a" + strings.Repeat("b", i%7) + string(rune('a'+i%26)) + "@c.example\nAction: failed\n\n")
	}
	for name, raw := range map[string]string{
		"one long line":       "From: MAILER-DAEMON@b.example\nSubject: failure notice\n\n" + many,
		"many lines":          "From: MAILER-DAEMON@b.example\nSubject: failure notice\n\n" + strings.ReplaceAll(many, "<x", "\n<x"),
		"many recipients":     statusMail(many, list.String(), "Content-Type: message/rfc822\n\n"+many),
		"failed recipients":   "Return-Path: <>\nSubject: failure notice\nX-Failed-Recipients: " + strings.Repeat("a@b.example, c@d.example, ", 5000) + "\n\n" + many,
		"a field without end": statusMail("", "Diagnostic-Code: smtp; "+strings.Repeat("550 5.1.1 ", 1<<17)+"\nFinal-Recipient: rfc822; a@b.example\n", ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := cputime.Used()
			rep, err := Read(strings.NewReader(raw), true, mail.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			checkReport(t, rep)
			if used := cputime.Used() - start; used.Seconds() > 4 && !cputime.RaceDetector { // of all that run side by side
				t.Errorf("took %v", used)
			}
		})
	}
}

// checkReport checks the documented properties of a report.
func checkReport(t *testing.T, rep Report) {
	t.Helper()
	if len(rep.Recipients) > maxReported || len(rep.Recipients) == 0 && (rep.OriginalID != "" || rep.FeedbackType != "") {
		t.Errorf("%d recipients of %+v", len(rep.Recipients), rep)
	}
	mailtest.CheckText(t, "envelope id", rep.EnvelopeID+rep.FeedbackType)
	if rep.OriginalID != "" && !mime.ValidMessageID(rep.OriginalID) {
		t.Errorf("original %q", rep.OriginalID)
	}
	for _, r := range rep.Recipients {
		mailtest.CheckText(t, "recipient", r.Email+r.Original+r.Diagnostic)
		if len(r.Diagnostic) > maxDiagnostic || strings.ContainsAny(r.Email+r.Original+r.Diagnostic+rep.EnvelopeID, "\r\n") {
			t.Errorf("%+v", r)
		}
		if r.Email == "" && r.Outcome != Complained || r.Hard && r.Outcome != Bounced || r.Outcome == "" {
			t.Errorf("%+v", r)
		}
		if r.Code != 0 && (r.Code < 400 || r.Code > 599) || r.Status != "" && statusLen(r.Status) != len(r.Status) {
			t.Errorf("code %d, status %q", r.Code, r.Status)
		}
	}
}

func TestReportOfAHeaderTooLarge(t *testing.T) {
	t.Parallel()
	if _, err := Read(bytes.NewReader(bytes.Repeat([]byte("X: y\r\n"), 1<<18)), false, mail.DefaultLimits()); err == nil {
		t.Error("no error")
	}
}
