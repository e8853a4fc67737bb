package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// reported records what the first recipient of an email did with it.
func (s *site) reported(t *testing.T, email string, status store.RecipientStatus, link string) {
	t.Helper()
	e, err := s.store.Email(t.Context(), s.account, nil, email)
	must(t, err)
	must(t, s.store.RecordReport(t.Context(), store.Report{
		MessageSeq: e.Seq, RecipientSeq: e.Recipients[0].Seq, Status: status, Link: link,
	}))
}

// sendRich sends an email to three people with everything that its page shows: it
// is delivered to one, opened and clicked; one bounces, and one is deferred.
func (s *site) sendRich(t *testing.T) string {
	t.Helper()
	id := s.send(t, "", "Your order has shipped", func(e *gen.EmailSend) {
		e.To = gen.NewAddressArrayRecipients(gen.AddressArray{
			gen.NewMailboxAddress("ann@out.example"), gen.NewMailboxAddress("gone@nowhere.example"), gen.NewMailboxAddress("slow@careful.example"),
		})
		e.HTML = gen.NewOptNilString(`<h2>It is on its way</h2><p>Follow it <a href="https://shop.example/t">here</a>.<script>evil()</script></p>`)
		e.ReplyTo = gen.NewOptNilOptionalRecipients(gen.NewMailboxOptionalRecipients("help@shop.example"))
		e.Tags = gen.NewOptEmailTags(gen.NewTagsEmailTags(gen.Tags{"flow": jx.Raw(`"receipt"`)}))
		e.Metadata = gen.NewOptFreeObject(gen.FreeObject{"order": jx.Raw(`4821`)})
		e.Attachments = []gen.EmailAttachmentInput{{Filename: "receipt.pdf", Content: []byte("%PDF-1.4")}}
	})
	s.clock.Add(time.Minute)
	s.handOver(t)
	s.clock.Add(time.Minute)
	s.reported(t, id, store.RecipientOpened, "")
	s.reported(t, id, store.RecipientClicked, "https://shop.example/t")
	return id
}

// The page of an email shows its timeline, its parts and its content.
func TestSentEmailShowsItsTimeline(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *site) {
		id := s.sendRich(t)
		v := s.visitAsUser(t)
		page := v.get("/emails/"+id).want(t, http.StatusOK).has(t, "receipt.pdf", "flow: receipt", "order: 4821", "help@shop.example", `<iframe class="document`)
		at := 0
		for _, want := range []string{
			"Accepted by Postroom", "Delivered", "250 2.0.0 Ok", "Bounced", "550 5.1.1", "Opened", "Link clicked", "https://shop.example/t",
			"Deferred, next attempt", "slow@careful.example", "451 4.7.1 Greylisting",
		} {
			i := strings.Index(page.body[at:], want)
			if i < 0 {
				t.Fatalf("the timeline has no %q after what comes before it:\n%s", want, page.body)
			}
			at += i
		}
		v.get("/emails/"+id+"?tab=html").want(t, http.StatusOK).has(t, "&lt;script&gt;evil()", `data-copy="content"`)
		v.get("/emails/"+id+"?tab=text").want(t, http.StatusOK).has(t, "your order 4821 left")
		frame := v.get("/emails/content/"+id+"/view").want(t, http.StatusOK).has(t, "It is on its way")
		if strings.Contains(frame.body, "evil") || !strings.Contains(frame.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("the frame is not clean: %s\n%s", frame.header, frame.body)
		}
		s.otherAccount(t)
		s.visitAsUser(t).get("/emails/content/"+id+"/view").want(t, http.StatusNotFound)
	})
}

// After the events were deleted, the recipients still tell how it ended.
func TestTimelineOutlivesItsEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *site) {
		id := s.send(t, "gone@nowhere.example", "Old news")
		s.handOver(t)
		s.clock.Add(store.EventTTL + 48*time.Hour)
		deleted, err := s.store.Sweep(t.Context(), "events")
		must(t, err)
		if deleted == 0 {
			t.Fatal("no event was deleted")
		}
		s.user, s.session = s.newUser(t, "later@example.com") // the first session has ended
		s.visitAsUser(t).get("/emails/"+id).want(t, http.StatusOK).has(t, `<span class="badge bad">bounced</span>`, "550 5.1.1")
	})
}

// The chips of the log count emails and messages by status, and filter by it.
func TestSentLogCountsByStatus(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *site) {
		s.sendSome(t)
		s.sendRich(t)
		s.send(t, "slow@careful.example", "Your table for tonight")
		s.handOver(t)
		s.send(t, "ann@out.example", "Waits")
		s.send(t, "ann@out.example", "Later", func(e *gen.EmailSend) { e.ScheduledAt = gen.NewOptNilDateTime(s.clock.Now().Add(24 * time.Hour)) })
		v := s.visitAsUser(t)
		v.get("/emails").want(t, http.StatusOK).has(t,
			`href="/emails?status=sending">sending <span class="badge ">1</span>`, `>queued <span class="badge ">1</span>`, `>scheduled <span class="badge warn">1</span>`,
			`>bounced <span class="badge bad">3</span>`, `>clicked <span class="badge good">1</span>`, "deferred", "Retry now")
		v.get("/emails?status=scheduled").want(t, http.StatusOK).has(t, "Later", `aria-current="true">scheduled`)
		v.get("/emails?tag=flow%3Areceipt").want(t, http.StatusOK).has(t, "Your order has shipped")
		if page := v.get("/emails?tag=flow%3Aother").want(t, http.StatusOK).has(t, "No matches"); strings.Contains(page.body, "has shipped") {
			t.Error("the tag does not filter")
		}
		v.get("/emails?kind=messages").want(t, http.StatusOK).has(t, `>delivered <span class="badge good">1</span>`, "550 5.1.1")
		s.otherAccount(t)
		if page := s.visitAsUser(t).get("/emails").want(t, http.StatusOK); strings.Contains(page.body, `aria-label="Status"`) {
			t.Errorf("another account's emails are counted:\n%s", page.body)
		}
	})
}

// Sent mail is filtered by recipient, tag and days, also together with a status.
func TestSentLogFilters(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "sender", gen.SendPolicyOpen)
		first := s.clock.Now().UTC().Format(time.DateOnly)
		s.send(t, "Ann@out.example", "To Ann")
		s.clock.Add(48 * time.Hour)
		second := s.clock.Now().UTC().Format(time.DateOnly)
		s.send(t, "bob@other.example", "To Bob")
		_, err := s.api.SendMessage(s.asUser(t), mailTo("carl@out.example", "To Carl", "Hello"), gen.SendMessageParams{InboxID: in.ID})
		must(t, err)
		v := s.visitAsUser(t)
		for query, want := range map[string]string{
			"": "ABC", "to=ann@out.example": "A", "to=*@out.example": "AC", "to=none": "", "from=" + second: "BC", "until=" + first: "A",
			"from=" + first + "&until=" + second: "ABC", "to=*@*&from=" + second + "&status=queued": "BC", "status=delivered": "", "from=soon": "ABC",
			"kind=emails": "AB", "kind=messages": "C", "q=hello": "C", "tag=a:b": "",
		} {
			got := ""
			page := v.get("/emails?"+query).want(t, http.StatusOK)
			for _, name := range []string{"Ann", "Bob", "Carl"} {
				if strings.Contains(page.body, ">To "+name+"<") {
					got += name[:1]
				}
			}
			counted := query == "" || strings.HasPrefix(query, "status") || strings.HasPrefix(query, "kind")
			if strings.Contains(page.body, `queued <span class="badge ">`) != counted {
				t.Errorf("?%s: counts that the filters do not know:\n%s", query, page.body)
			}
			if got != want {
				t.Errorf("?%s shows %q, want %q", query, got, want)
			}
		}
		v.get("/emails?to=ann@out.example").has(t, `value="ann@out.example"`, `href="/emails?status=queued&amp;to=ann%40out.example"`, `href="/emails">Clear`)
		v.get("/emails?tag=nocolon").want(t, http.StatusBadRequest).has(t, "tag-fault", `value="nocolon"`, "Correct the filter")
		v.get("/emails?to="+strings.Repeat("x", 300)).want(t, http.StatusBadRequest).has(t, "to-fault")
	})
}

// A deferred delivery is retried now, and once.
func TestRetryOfSentMail(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "sender", gen.SendPolicyOpen)
		email := s.send(t, "slow@careful.example", "Your table")
		m, err := s.api.SendMessage(s.asUser(t), mailTo("slow@careful.example", "Your chair", "Hello"), gen.SendMessageParams{InboxID: in.ID})
		must(t, err)
		v := s.visitAsUser(t)
		pages := map[string]string{email: "/emails/" + email, m.(*gen.Message).ID: "/messages/" + m.(*gen.Message).ID}
		for id, page := range pages {
			v.post("/emails/"+id+"/retry", nil).want(t, http.StatusSeeOther)
			v.get(page).want(t, http.StatusOK).has(t, "No delivery is deferred")
		}
		s.handOver(t)
		for id, page := range pages {
			v.get(page).want(t, http.StatusOK).has(t, "Retry now")
			to := v.post("/emails/"+id+"/retry", nil).want(t, http.StatusSeeOther).header.Get("Location")
			if to != page {
				t.Errorf("the retry leads to %s, want %s", to, page)
			}
			if got := v.get(page).want(t, http.StatusOK).has(t, "The next attempt starts now."); strings.Contains(got.body, "Retry now") {
				t.Error("a second retry is possible at once")
			}
		}
		claimed, err := s.store.ClaimRecipients(t.Context(), 10, time.Minute, nil)
		must(t, err)
		if len(claimed) != 2 {
			t.Errorf("%d deliveries are due, want 2", len(claimed))
		}
		s.otherAccount(t)
		s.visitAsUser(t).post("/emails/"+email+"/retry", nil).want(t, http.StatusNotFound)
	})
}
