package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/gen"
)

// The overview lists what a person should check, and nothing when all is well.
func TestOverviewListsWhatNeedsAttention(t *testing.T) {
	s := openSite(t)
	v := s.visitAsUser(t)
	if page := v.get("/").want(t, http.StatusOK); strings.Contains(page.body, "Needs attention") {
		t.Errorf("something needs attention in an empty account:\n%s", page.body)
	}
	in := s.troubled(t)
	v.get("/").want(t, http.StatusOK).has(t,
		"has been failing for 2 hours", "Domain own.example is not verified", "2 drafts wait for approval", "3 messages are in quarantine",
		in.Address+": 8 of 10 recipients per day used", `href="/inboxes/`+in.ID+`/settings"`, "of the mail of 30 days bounced. Sending can pause above 5 %.",
		"Latest messages", "Your GitHub launch code", `title>`+s.clock.Now().UTC().Format("Jan 2")+" · ")
	s.otherAccount(t)
	if page := s.visitAsUser(t).get("/").want(t, http.StatusOK); strings.Contains(page.body, "Needs attention") {
		t.Errorf("another account's troubles are shown:\n%s", page.body)
	}
}

// troubled fills the account with one of each trouble. It returns the inbox whose
// limit is nearly used.
func (s *site) troubled(t *testing.T) *gen.Inbox {
	t.Helper()
	ctx := s.asUser(t)
	to := newReceiver(t)
	to.status.Store(http.StatusServiceUnavailable)
	_, err := s.api.CreateWebhook(ctx, &gen.WebhookCreate{URL: gen.WebhookUrl(to.url), Events: gen.NewOptNilWebhookEvents(gen.WebhookEvents{"draft.pending"})})
	must(t, err)
	_, err = s.api.CreateDomain(ctx, &gen.DomainCreate{Domain: "own.example"}, gen.CreateDomainParams{})
	must(t, err)
	held := s.newInbox(t, "held", gen.SendPolicyApproval)
	s.hold(t, held, mailTo("ann@out.example", "First", "Hello"))
	s.hold(t, held, mailTo("ann@out.example", "Second", "Hello"))
	s.deliver(t)
	in := s.newInbox(t, "busy", gen.SendPolicyOpen)
	_, err = s.api.UpdateInbox(ctx, &gen.InboxUpdate{Limits: gen.NewOptNilSendLimits(gen.SendLimits{SendsPerDay: gen.NewOptNilInt64(10), SendsPerHour: gen.NewOptNilInt64(100)})},
		gen.UpdateInboxParams{InboxID: in.ID})
	must(t, err)
	for i := range 8 {
		_, err := s.api.SendMessage(ctx, mailTo(fmt.Sprintf("reader%d@news.example", i), "News", "News"), gen.SendMessageParams{InboxID: in.ID})
		must(t, err)
	}
	for i := range 45 {
		s.send(t, fmt.Sprintf("reader%d@news.example", i), "News")
		if i%20 == 0 {
			s.send(t, fmt.Sprintf("gone@nowhere%d.example", i), "News")
		}
	}
	s.handOver(t)
	s.put(t, in, codeMail)
	s.quarantine(t, in, "odd.example", 3)
	s.clock.Add(2 * time.Hour)
	return in
}

// The charts name their values, and the tables count by inbox and tag.
func TestOverviewChartsAndGroups(t *testing.T) {
	s := openSite(t)
	v := s.visitAsUser(t)
	if page := v.get("/").want(t, http.StatusOK); strings.Contains(page.body, `class="charts"`) || strings.Contains(page.body, "By inbox") || strings.Contains(page.body, "By tag") {
		t.Error("an empty account has charts or groups")
	}
	s.sendSome(t)
	tagged := func(e *gen.EmailSend) {
		e.Tags = gen.NewOptEmailTags(gen.NewTagsEmailTags(gen.Tags{"flow": jx.Raw(`"receipt"`), "plan": jx.Raw(`"pro"`)}))
	}
	s.send(t, "ann@out.example", "Your receipt", tagged)
	s.send(t, "gone@nowhere.example", "Your receipt", tagged)
	s.handOver(t)
	today := s.clock.Now().UTC().Format("Jan 2")
	v.get("/").want(t, http.StatusOK).has(t, today+" · 2 delivered · 2 bounced or failed · 0 complaints", "By inbox", "flow:receipt", "plan:pro",
		`href="/emails?tag=flow%3areceipt"`, "Bounce rate, 30 days", `<span class="key limit">5 % limit</span>`, "% bounced</title>", `class="limit"`)
	if page := v.get("/?days=90").want(t, http.StatusOK).has(t, "Last 90 days"); len(page.body) > 100<<10 {
		t.Errorf("the page has %d bytes, want 100 KiB or fewer", len(page.body))
	}
	inboxes, err := s.store.InboxCounts(t.Context(), s.account, 30, 5)
	must(t, err)
	if len(inboxes) != 1 || inboxes[0].Received == 0 || inboxes[0].Sent != 1 || inboxes[0].Delivered != 1 || inboxes[0].Bounced != 1 {
		t.Errorf("the inbox has the counts %+v", inboxes)
	}
	tags, err := s.store.TagCounts(t.Context(), s.account, 30, 5)
	must(t, err)
	if len(tags) != 2 || tags[0].Name != "flow:receipt" || tags[0].Sent != 1 || tags[0].Delivered != 1 || tags[0].Bounced != 1 {
		t.Errorf("the tags have the counts %+v", tags)
	}
	s.clock.Add(31 * 24 * time.Hour)
	if tags, err = s.store.TagCounts(t.Context(), s.account, 30, 5); err != nil || len(tags) != 0 {
		t.Errorf("after 31 days: %+v, %v", tags, err)
	}
	s.otherAccount(t)
	if page := s.visitAsUser(t).get("/").want(t, http.StatusOK); strings.Contains(page.body, "By inbox") || strings.Contains(page.body, "flow:receipt") {
		t.Error("another account's groups show")
	}
}
