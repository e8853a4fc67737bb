package web_test

import (
	"fmt"
	"io"
	"log/slog"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/approval"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// notifier returns what tells approvers about the drafts of a site.
func (s *site) notifier(t *testing.T, approvers ...string) *approval.Worker {
	t.Helper()
	w, err := approval.New(approval.Config{
		Store: s.store, API: s.service, Now: s.clock.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Notices: approval.Notices{Approvers: approvers, Links: s.links, Domain: storetest.Domain},
	})
	must(t, err)
	return w
}

// notices delivers what is queued and returns the emails to approvers that mx has by
// then, oldest first.
func (s *site) notices(t *testing.T, mx *smtptest.MX) []notice {
	t.Helper()
	s.deliverTo(t, mx)
	var out []notice
	for _, m := range mx.Messages() {
		parsed, err := mail.ReadMessage(strings.NewReader(string(m.Data)))
		must(t, err)
		if parsed.Header.Get("Auto-Submitted") != "auto-generated" {
			continue
		}
		body := parsed.Body
		if parsed.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
			body = quotedprintable.NewReader(body)
		}
		text, err := io.ReadAll(body)
		must(t, err)
		n := notice{to: m.To[0], subject: parsed.Header.Get("Subject"), text: strings.ReplaceAll(string(text), "\r\n", "\n")}
		for _, at := range linkForm.FindAllString(n.text, -1) {
			n.links = append(n.links, strings.TrimPrefix(at, s.url))
		}
		out = append(out, n)
	}
	return out
}

// notice is an email to an approver.
type notice struct {
	to, subject, text string
	links             []string
}

var linkForm = regexp.MustCompile(`(?m)^http://\S+/approve/\S+$`)

func notify(t *testing.T, w *approval.Worker, want int) {
	t.Helper()
	if n, err := w.Notify(t.Context()); err != nil || n != want {
		t.Fatalf("%d notifications, want %d: %v", n, want, err)
	}
}

// Each approver gets one email about each version of a draft, however many nodes look
// for new drafts at the same time.
func TestApproversGetOneEmailPerVersion(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		approvers := []string{"ann@out.example", "ben@out.example"}
		s := newSite(t, cfg, options{approvers: approvers})
		mx := smtptest.NewMX(t, smtptest.MXConfig{})
		nodes := []*approval.Worker{s.notifier(t, approvers...), s.notifier(t, approvers...)}
		if s.store.Engine() == "postgresql" {
			nodes = append(nodes, newNode(t, cfg, s, options{approvers: approvers}).notifier(t, approvers...))
		}
		all := func() (sent int) {
			var n atomic.Int64
			var running sync.WaitGroup
			for range 2 {
				for _, w := range nodes {
					running.Go(func() {
						sent, err := w.Notify(t.Context())
						if err != nil {
							t.Error(err)
						}
						n.Add(int64(sent))
					})
				}
			}
			running.Wait()
			return int(n.Load())
		}
		in := s.newInbox(t, "held", gen.SendPolicyApproval)
		d := s.hold(t, in, mailTo("cy@far.example", "Order  of chairs", "Twenty chairs.\nhttp://evil.example/approve/x"))
		if n := all(); n != 2 {
			t.Errorf("%d emails about a new draft, want 2", n)
		}
		if n := all(); n != 0 {
			t.Errorf("%d emails about a known draft", n)
		}
		_, err := s.api.UpdateDraft(s.asUser(t), &gen.DraftUpdate{Text: gen.NewOptNilString("Thirty chairs.")}, gen.UpdateDraftParams{DraftID: d.ID})
		must(t, err)
		if n := all(); n != 2 {
			t.Errorf("%d emails about an edited draft, want 2", n)
		}
		ns := s.notices(t, mx)
		var to []string
		for _, n := range ns {
			to = append(to, n.to)
			if len(n.links) != 1 || !strings.HasPrefix(n.subject, "Approve? Order") || !strings.Contains(n.text, "\n> T") {
				t.Errorf("to %s: %q, %d links:\n%s", n.to, n.subject, len(n.links), n.text)
			}
		}
		slices.Sort(to)
		if want := []string{approvers[0], approvers[0], approvers[1], approvers[1]}; !slices.Equal(to, want) {
			t.Errorf("emails to %q", to)
		}
	})
}

// A link opens exactly its version. Looking never decides, deciding happens once, and no
// other token works.
func TestLinkApprovesItsVersionOnce(t *testing.T) {
	s := openSite(t, options{approvers: []string{"ann@out.example"}})
	w, mx, v := s.notifier(t, "ann@out.example"), smtptest.NewMX(t, smtptest.MXConfig{}), s.visit(t)
	in := s.newInbox(t, "held", gen.SendPolicyApproval)
	status := func(d *gen.Draft) string {
		t.Helper()
		got, err := s.api.GetDraft(s.asUser(t), gen.GetDraftParams{DraftID: d.ID})
		must(t, err)
		return got.Status
	}
	link := func(d *gen.Draft) string {
		t.Helper()
		return strings.TrimPrefix(s.links.URL(approval.Link{
			AccountID: s.account, DraftID: d.ID, Version: d.Version, Approver: "ann@out.example", Expires: s.clock.Now().Add(time.Hour).Unix(),
		}), s.url)
	}
	d := s.hold(t, in, mailTo("cy@far.example", "Order", "Twenty chairs."))
	notify(t, w, 1)
	n := s.notices(t, mx)[0]
	at := n.links[0]
	for range 3 {
		if page := v.get(at).want(t, 200).has(t, "Twenty chairs.", "Approve and send"); strings.Contains(page.body, `role="alert"`) {
			t.Errorf("the page shows an error:\n%s", page.body)
		}
		v.do(http.MethodHead, at, "", nil).want(t, 200)
	}
	for _, bad := range []string{at[:len(at)-1], at + "A", at[:20] + "x" + at[21:], "/approve/", "/approve/x"} {
		v.get(bad).want(t, 404)
		v.post(bad, []string{"decision", "approve"})
	}
	v.post(at, []string{"decision", "both"}).want(t, 400)
	v.post(at, []string{"decision", "approve"}, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").want(t, 403)
	if got := status(d); got != "pending" {
		t.Fatalf("the draft is %s", got)
	}
	v.post(at, []string{"decision", "approve"}).want(t, 303)
	v.post(at, []string{"decision", "approve"}).want(t, 409).has(t, "already")
	v.post(at, []string{"decision", "reject"}).want(t, 409)
	v.get(at).want(t, 200).has(t, "Approved.")
	if got := status(d); got != "sent" || s.sentFrom(t, in) != 1 {
		t.Errorf("the draft is %s, %d messages were sent", got, s.sentFrom(t, in))
	}
	if got, err := s.api.GetDraft(s.asUser(t), gen.GetDraftParams{DraftID: d.ID}); err != nil || got.DecidedBy.Value != "approver:ann@out.example" {
		t.Errorf("decided by %s, %v", got.DecidedBy.Value, err)
	}

	second := s.hold(t, in, mailTo("cy@far.example", "Order", "Many chairs."))
	old := link(second)
	edited, err := s.api.UpdateDraft(s.asUser(t), &gen.DraftUpdate{Text: gen.NewOptNilString("No chairs.")}, gen.UpdateDraftParams{DraftID: second.ID})
	must(t, err)
	page := v.get(old).want(t, 200).has(t, "This draft has changed", "No chairs.")
	if strings.Contains(page.body, "Approve and send") {
		t.Error("an outdated link has a button")
	}
	v.post(old, []string{"decision", "approve"}).want(t, 409).has(t, "This draft has changed")
	v.post(old, []string{"decision", "reject"}).want(t, 409)
	if got := status(second); got != "pending" {
		t.Errorf("after an outdated link the draft is %s", got)
	}
	v.post(link(edited), []string{"decision", "reject", "reason", "too few"}).want(t, 303)
	v.get(link(edited)).want(t, 200).has(t, "Rejected")

	third := s.hold(t, in, mailTo("cy@far.example", "Order", "Chairs."))
	late := link(third)
	other := strings.TrimPrefix(s.links.URL(approval.Link{
		AccountID: s.account, DraftID: third.ID, Version: 1, Approver: "eve@out.example", Expires: s.clock.Now().Add(time.Hour).Unix(),
	}), s.url)
	v.get(other).want(t, 404)
	s.clock.Add(time.Hour)
	v.get(late).want(t, 404)
	v.post(late, []string{"decision", "approve"}).want(t, 404)
	if got := status(third); got != "pending" {
		t.Errorf("after links that do not work the draft is %s", got)
	}
}

// The form of a draft sets when it ends without a decision, and keeps that unless asked.
func TestFormSetsTheEndOfADraft(t *testing.T) {
	s := openSite(t)
	v := s.visitAsUser(t)
	d := s.hold(t, s.newInbox(t, "held", gen.SendPolicyApproval), mailTo("cy@far.example", "Order", "Chairs."))
	at := s.clock.Now().Add(4 * time.Hour).UTC().Truncate(time.Millisecond)
	for i, tt := range []struct {
		undecided string
		status    int
		at        time.Time // zero: never
		on        string
	}{
		{"send 14400", 200, at, "send"},
		{"", 200, at, "send"},
		{"reject 14400", 200, at, "reject"},
		{"wait", 200, time.Time{}, "reject"},
		{"send soon", 400, time.Time{}, "reject"},
		{"reject 1", 400, time.Time{}, "reject"},
		{"explode 3600", 400, time.Time{}, "reject"},
	} {
		now, err := s.api.GetDraft(s.asUser(t), gen.GetDraftParams{DraftID: d.ID})
		must(t, err)
		v.get("/approvals/"+d.ID+"/edit").want(t, 200).has(t, "If nobody decides", "Send after 1 day")
		v.post("/approvals/"+d.ID+"/edit", []string{
			"version", fmt.Sprint(now.Version), "subject", "Order", "text", "Chairs.", "undecided", tt.undecided,
		}).want(t, tt.status)
		got, err := s.api.GetDraft(s.asUser(t), gen.GetDraftParams{DraftID: d.ID})
		must(t, err)
		if got.OnExpiry != tt.on || !got.ExpiresAt.Value.Equal(tt.at) {
			t.Errorf("%d: %s at %s, want %s at %s", i, got.OnExpiry, got.ExpiresAt.Value, tt.on, tt.at)
		}
	}
}

// Of many drafts five have an email each, and one email has the others.
func TestManyDraftsAreOneEmail(t *testing.T) {
	s := openSite(t, options{approvers: []string{"ann@out.example"}})
	w, mx := s.notifier(t, "ann@out.example"), smtptest.NewMX(t, smtptest.MXConfig{})
	in := s.newInbox(t, "held", gen.SendPolicyApproval)
	hold := func(n int) {
		for i := range n {
			s.hold(t, in, mailTo("cy@far.example", fmt.Sprintf("Order %d", i), "Chairs."))
		}
	}
	hold(3)
	notify(t, w, 3)
	hold(9)
	notify(t, w, 3)
	hold(2)
	notify(t, w, 0)
	ns := s.notices(t, mx)
	if len(ns) != 6 {
		t.Fatalf("%d emails, want 6", len(ns))
	}
	var digests [][]string
	for _, n := range ns {
		if n.subject == "Approve 7 drafts?" {
			digests = append(digests, n.links)
		} else if len(n.links) != 1 {
			t.Errorf("%q has %d links", n.subject, len(n.links))
		}
	}
	if len(digests) != 1 || len(digests[0]) != 7 {
		t.Errorf("%d digests with %d links", len(digests), len(digests[0]))
	}
	s.visit(t).get(digests[0][6]).want(t, 200).has(t, "Approve and send")
	s.clock.Add(time.Minute)
	notify(t, w, 2)
}

// What the installation sends to approvers counts against no limit of the account, obeys
// none of its lists, and no key of the account sees it.
func TestAgentsDoNotSeeNotices(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		one := int64(0)
		cfg.AgentLimits = &store.Limits{SendsPerDay: &one, OnLimit: store.LimitRefuses}
		s := newSite(t, cfg, options{approvers: []string{"ann@out.example"}})
		w, mx := s.notifier(t, "ann@out.example"), smtptest.NewMX(t, smtptest.MXConfig{})
		in := s.newInbox(t, "held", gen.SendPolicyApproval)
		_, err := s.api.CreateListEntry(s.asUser(t), &gen.ListEntryCreate{
			Direction: gen.ListDirectionOutbound, Action: gen.ListActionBlock, Pattern: "*@out.example",
		}, gen.CreateListEntryParams{})
		must(t, err)
		d := s.hold(t, in, mailTo("cy@far.example", "Order", "Chairs."))
		_, err = s.api.StopSending(s.asUser(t), &gen.StopScope{})
		must(t, err)
		notify(t, w, 1)
		token := strings.TrimPrefix(s.notices(t, mx)[0].links[0], approval.LinkPath)
		_, err = s.api.ResumeSending(s.asUser(t), &gen.StopScope{})
		must(t, err)
		emails, err := s.api.ListEmails(s.asUser(t), gen.ListEmailsParams{})
		must(t, err)
		if len(emails.Data) != 0 {
			t.Errorf("the account has the emails %+v", emails.Data)
		}
		events, err := s.api.ListEvents(s.asUser(t), gen.ListEventsParams{})
		must(t, err)
		log, ok := events.(*gen.ListEventsOKRawApplicationJSON)
		if !ok {
			t.Fatalf("%T", events)
		}
		text, err := io.ReadAll(log.Response.Body)
		must(t, err)
		if !strings.Contains(string(text), "draft.pending") || strings.Contains(string(text), `"email.`) || strings.Contains(string(text), "ann@out.example") {
			t.Errorf("the account has the events %s", text)
		}
		v := s.visitAsUser(t)
		for _, path := range []string{"/emails", "/messages", "/approvals", "/approvals/" + d.ID, "/suppressions", "/contacts"} {
			if page := v.get(path).want(t, 200); strings.Contains(page.body, token) || strings.Contains(page.body, "ann@out.example") {
				t.Errorf("%s shows the notice", path)
			}
		}
		usage, err := s.api.GetUsage(s.asUser(t))
		must(t, err)
		if usage.SendsToday.Used != 0 {
			t.Errorf("%d are counted", usage.SendsToday.Used)
		}
		if _, err := s.api.SendDraft(s.asUser(t), gen.OptDraftSend{}, gen.SendDraftParams{DraftID: d.ID}); err == nil {
			t.Error("the limit of the account does not apply to its own messages")
		}
	})
}

// An approver at a domain where agents can have inboxes gets no notification.
func TestApproversMustBeOutsideOwnDomains(t *testing.T) {
	s := openSite(t)
	s.hold(t, s.newInbox(t, "held", gen.SendPolicyApproval), mailTo("cy@far.example", "Order", "Chairs."))
	notify(t, s.notifier(t, "boss@"+storetest.Domain, "boss@sub."+storetest.Domain), 0)
	notify(t, s.notifier(t, "boss@"+storetest.Domain, "ann@out.example"), 1)
}
