package inbound

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// complained is a complaint that arrives over SMTP.
type complained struct {
	about    string // recipient of the mail
	from     string // author of the report
	envelope string // reverse-path; empty means from
	form     func(from, path, about string) string
}

// arfMail is a complaint in the format of RFC 5965, as Yahoo sends it.
func arfMail(from, path, _ string) string {
	return "From: Feedback <" + from + ">\nTo: <" + path + ">\nSubject: FW: Hello\nMIME-Version: 1.0\n" +
		"Content-Type: multipart/report; report-type=feedback-report; boundary=b\n\n" +
		"--b\nContent-Type: text/plain\n\nA reader marked this as spam.\n" +
		"--b\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\nUser-Agent: Loop/1.0\nVersion: 0.1\nOriginal-Mail-From: <" + path + ">\n\n" +
		"--b\nContent-Type: message/rfc822\n\nFrom: hello@in.example\nSubject: Hello\n\nHello.\n--b--\n"
}

// plainMail is a complaint as Microsoft sends it: with the original and without a
// feedback report.
func plainMail(from, path, about string) string {
	return "From: " + from + "\nTo: <" + path + ">\nSubject: complaint about message from 192.0.2.25\nMIME-Version: 1.0\n" +
		"Content-Type: multipart/mixed; boundary=b\n\n" +
		"--b\nContent-Type: message/rfc822\n\nX-HmXmrOriginalRecipient: " + about + "\nReturn-Path: " + path +
		"\nFrom: hello@in.example\nSubject: Hello\n\nHello.\n--b--\n"
}

// eventMail is a complaint as an event of Mailgun.
func eventMail(from, path, about string) string {
	return "From: Mailgun <" + from + ">\nTo: <" + path + ">\nSubject: Complaint\n\n" +
		`{"event":"complained","recipient":"` + about + `","message":{"headers":{"message-id":"x@in.example"}}}` + "\n"
}

// A complaint counts towards the pause of an account if its author is
// authenticated, and is the domain that the mail went to or a feedback loop; it
// takes complaints of three domains. Whoever got the mail can still have the
// address suppressed.
func TestOnlyAuthenticatedComplaintsPauseAnAccount(t *testing.T) {
	t.Parallel()
	spf := func(names ...string) smtptest.Zones {
		z := smtptest.Zones{"client.example.": {}}
		for _, name := range names {
			z[name+"."] = smtptest.Zone{TXT: []string{"v=spf1 ip4:127.0.0.0/8 ip6:::1 -all"}}
		}
		return z
	}
	zones := spf("one.example", "two.example", "three.example", "reports.three.example", "attacker.example", "arf.mail.yahoo.com", "hotmail.com",
		"mailgun.net", "unruly.example", "loop.example", "sub.loop.example")
	for _, org := range []string{"one.example", "two.example", "three.example", "attacker.example", "yahoo.com", "hotmail.com", "mailgun.net", "loop.example"} {
		zones["_dmarc."+org+"."] = smtptest.Zone{TXT: []string{"v=DMARC1; p=reject"}}
	}
	by := func(from string, form func(from, path, about string) string, envelope string, about ...string) (all []complained) {
		for _, a := range about {
			all = append(all, complained{about: a, from: from, envelope: envelope, form: form})
		}
		return all
	}
	three := []string{"a@one.example", "b@two.example", "c@three.example"}
	themselves := []complained{
		{about: "a@one.example", from: "abuse@one.example", form: arfMail},
		{about: "b@two.example", from: "abuse@two.example", form: arfMail},
		{about: "c@three.example", from: "abuse@reports.three.example", form: arfMail},
	}
	// A forger has no right to the domain: SPF fails for its own reverse-path.
	const forger = "ann@forger.example"
	tests := []struct {
		name       string
		complaints []complained
		paused     bool
	}{
		{"one forged", by("ann@one.example", arfMail, forger, "a@one.example"), false},
		{"forged in the name of a feedback loop", by("feedback@arf.mail.yahoo.com", arfMail, forger, append(three, "d@four.example", "e@five.example")...), false},
		{"of another domain than that of the recipient", by("eve@attacker.example", arfMail, "", three...), false},
		{"of a domain without DMARC", by("eve@unruly.example", arfMail, "", "a@unruly.example", "b@unruly.example", "c@unruly.example"), false},
		{"of a neighbour of a feedback loop", by("eve@hotmail.com", plainMail, "", three...), false},
		{"with two authors", by("staff@hotmail.com, eve@hotmail.com", plainMail, "eve@hotmail.com", three...), false},
		{"of one domain, each with a host of its own", by("abuse@three.example", arfMail, "", "a@a.three.example", "b@b.three.example", "c@c.three.example"), false},
		{"of two domains", append(themselves[:2:2], complained{about: "d@one.example", from: "abuse@one.example", form: arfMail}), false},
		{"of three domains", themselves, true},
		{"Yahoo", by("feedback@arf.mail.yahoo.com", arfMail, "", "a@yahoo.com", "b@aol.com", "c@hosted.example"), true},
		{"Microsoft", by("staff@hotmail.com", plainMail, "", "a@outlook.com", "b@live.com", "c@hosted.example"), true},
		{"Mailgun", by("events@mailgun.net", eventMail, "", three...), true},
		{"a feedback loop of the settings", by("fbl@sub.loop.example", arfMail, "", three...), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				signer, err := feedback.NewSigner(bytes.Repeat([]byte("k"), 32))
				if err != nil {
					t.Fatal(err)
				}
				in := storetest.Inbox(t, s)
				to := make([]string, 200)
				for i := range to {
					to[i] = fmt.Sprintf("r%d@out.example", i)
				}
				deliverTo(t, s, in, to)
				_, addr := serve(t, newReceiver(t, s, authenticatedWith(t, zones, 0), func(c *ReceiverConfig) {
					c.Feedback, c.FeedbackLoops = signer, []string{"loop.example"}
				}))
				c := hello(t, addr)
				for _, report := range tt.complaints {
					sent := deliverTo(t, s, in, []string{report.about})
					path := signer.ReturnPath(feedback.Sent{Account: in.AccountID, Message: sent.MessageSeq, Recipient: sent.Seq}, storetest.Domain)
					if report.envelope == "" {
						report.envelope = report.from
					}
					c.begin(report.envelope, path)
					c.send(strings.ReplaceAll(report.form(report.from, path, report.about), "\n", "\r\n") + ".\r\n")
					c.want("250")
					if got, err := s.Message(t.Context(), in.AccountID, sent.Message.ID); err != nil || got.Status != store.MessageComplained {
						t.Errorf("the mail to %s is %s, %v", report.about, got.Status, err)
					}
					if listed, err := s.SuppressedAmong(t.Context(), []store.Addressee{{AccountID: in.AccountID, EmailFold: report.about}}); err != nil || !listed[0] {
						t.Errorf("%s is not suppressed: %v", report.about, err)
					}
				}
				u, err := s.Usage(t.Context(), in.AccountID)
				if err != nil {
					t.Fatal(err)
				}
				if paused := u.Account.PausedAt != nil; paused != tt.paused {
					t.Errorf("paused: %t, want %t", paused, tt.paused)
				}
			}, storetest.WithConfig(func(c *store.Config) { c.AutoPause = true }))
		})
	}
}

// deliverTo sends a message, which is delivered to all of its recipients, and returns
// the first of them.
func deliverTo(t *testing.T, s *store.Store, in store.Inbox, to []string) store.Claimed {
	t.Helper()
	storetest.Sent(t, s, in, to)
	claimed, err := s.ClaimRecipients(t.Context(), len(to), time.Minute, nil)
	if err != nil || len(claimed) != len(to) {
		t.Fatalf("%d recipients claimed: %v", len(claimed), err)
	}
	for _, c := range claimed {
		err := s.RecordAttempt(t.Context(), store.Attempt{
			RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: store.RecipientDelivered, Response: "250 2.0.0 thanks",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return claimed[0]
}
