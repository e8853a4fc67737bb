package handlers_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/search"
	"github.com/postroom/postroom/store"
)

// index adds at most n messages to the full-text index.
func (s *server) index(t *testing.T, n int) {
	t.Helper()
	for n > 0 {
		done, err := s.store.Index(t.Context(), min(n, 50), search.Text)
		if err != nil {
			t.Fatal(err)
		}
		if n -= done; done == 0 {
			return
		}
	}
}

// found returns the subjects of a list with these parameters.
func (s *server) found(t *testing.T, path string, params url.Values) []string {
	t.Helper()
	return s.do(t, http.MethodGet, path+"?"+params.Encode(), "").want(t, http.StatusOK).strs(t, "data", "subject")
}

func TestSearch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		for _, m := range []string{
			"Subject: Invoice 4711\n\nYour order of red shoes, paid by card.",
			"Subject: Rechnung für März\nContent-Type: text/plain; charset=utf-8\n\nÜber das Café in der Weißstraße.",
			"Subject: 会議のお知らせ\nContent-Type: text/plain; charset=utf-8\n\n東京都で会議があります。",
			"Subject: Page\nContent-Type: text/html\n\n<p>Only in <b>html</b>: pineapple</p><style>.hidden { color: red }</style>",
			"Subject: Both\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\nseen as text\n--b\n" +
				"Content-Type: text/html\n\n<p>seen as page</p>\n--b--",
			"Subject: Address\n\nWrite to ann.smith@shop.example, or visit https://shop.example/red-shoes?x=1",
		} {
			s.receive(t, in, m)
		}
		const invoice, rechnung, meeting, page, both, address = "Invoice 4711", "Rechnung für März", "会議のお知らせ", "Page", "Both", "Address"
		tests := []struct {
			q    string
			want []string
		}{
			{"invoice", []string{invoice}},
			{"INVOICE 4711", []string{invoice}},
			{"shoes invoice", []string{invoice}},
			{"red shoes", []string{address, invoice}},
			{`"red shoes"`, []string{address, invoice}},
			{`"shoes red"`, nil},
			{`"4711 your"`, nil}, // the subject ends before "your"
			{"invoic", nil},
			{"cafe weissstrasse marz", []string{rechnung}},
			{"CAFÉ", []string{rechnung}},
			{"東京都", []string{meeting}},
			{"会議", []string{meeting}},
			{"京東", nil},
			{"pineapple", []string{page}},
			{"hidden", nil},
			{"text page", []string{both}},
			{"ann.smith@shop.example", []string{address}},
			{"smith.ann@shop.example", nil},
			{"https://shop.example/red-shoes", []string{address}},
			{"nothing", nil},
			{"***", nil},
			{`"`, nil},
			{`invoice "`, []string{invoice}},
			{`"your order`, []string{invoice}},
			{"“red shoes” paid", []string{invoice}},
		}
		check := func(t *testing.T, when string) {
			t.Helper()
			for _, tt := range tests {
				for _, path := range []string{"/v1/messages", "/v1/inboxes/" + in.ID + "/messages"} {
					got := s.found(t, path, url.Values{"q": {tt.q}})
					if d := cmp.Diff(tt.want, got); d != "" && len(tt.want)+len(got) > 0 {
						t.Errorf("%s, %s?q=%s (-want +got):\n%s", when, path, tt.q, d)
					}
				}
			}
		}
		check(t, "nothing indexed")
		s.index(t, 3)
		check(t, "half of it indexed")
		s.index(t, 10)
		check(t, "all indexed")
	})
}

// Every filter combines with the others and with q.
func TestSearchWithFilters(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		one, two := s.newInbox(t), s.newInbox(t)
		s.receive(t, one, "From: a@github.com\nSubject: first red")
		s.clock.Add(time.Minute)
		second := s.receive(t, one, "From: b@mail.github.com\nSubject: second red")
		s.clock.Add(time.Minute)
		s.receive(t, two, "From: a@github.com\nSubject: third red")
		s.receive(t, two, "From: a@github.com\nSubject: fourth blue")
		sent := "/v1/inboxes/" + two.ID + "/messages"
		s.do(t, http.MethodPost, sent, `{"to":"c@out.example","subject":"fifth red","text":"t"}`).want(t, http.StatusCreated)
		tests := []struct {
			params string
			want   []string
		}{
			{"q=red", []string{"fifth red", "third red", "second red", "first red"}},
			{"q=red&direction=in", []string{"third red", "second red", "first red"}},
			{"q=red&direction=out", []string{"fifth red"}},
			{"q=red&status=queued", []string{"fifth red"}},
			{"q=red&status=received&inbox_id=" + two.ID, []string{"third red"}},
			{"q=red&from=*@github.com", []string{"third red", "first red"}},
			{"q=red&from=*@*.github.com", []string{"second red"}},
			{"q=red&from=B@MAIL.github.com", []string{"second red"}},
			{"q=red&from=*b*", []string{"fifth red", "third red", "second red", "first red"}},
			{"q=red&subject=D%20R", []string{"third red", "second red"}},
			{"q=red&thread_id=" + second.ThreadID, []string{"second red"}},
			{"q=red&since=" + after(time.Minute), []string{"fifth red", "third red", "second red"}},
			{"q=red&since=" + after(time.Hour), nil},
			{"q=red&inbox_id=" + one.ID, []string{"second red", "first red"}},
			{"q=red&direction=in&from=*@github.com&subject=third&since=" + after(0) + "&inbox_id=" + two.ID + "&status=received", []string{"third red"}},
			{"q=blue&from=*@*.github.com", nil},
			{"from=a@github.com&subject=r&direction=in&since=" + after(time.Minute), []string{"fourth blue", "third red"}},
		}
		for _, indexed := range []int{0, 2, 10} {
			s.index(t, indexed)
			for _, tt := range tests {
				params, err := url.ParseQuery(tt.params)
				if err != nil {
					t.Fatal(err)
				}
				got := s.found(t, "/v1/messages", params)
				if d := cmp.Diff(tt.want, got); d != "" && len(tt.want)+len(got) > 0 {
					t.Errorf("%s (-want +got):\n%s", tt.params, d)
				}
			}
		}
		only := s.newKey(t, onlyInboxes(one.ID))
		got := s.do(t, http.MethodGet, "/v1/messages?q=red", "", as(only)).want(t, http.StatusOK).strs(t, "data", "subject")
		if d := cmp.Diff([]string{"second red", "first red"}, got); d != "" {
			t.Errorf("with a key for one inbox (-want +got):\n%s", d)
		}
		s.do(t, http.MethodGet, "/v1/messages?q=red&inbox_id="+two.ID, "", as(only)).wantError(t, http.StatusNotFound, "not_found inbox_id")
	})
}

// C15: search does not find deleted content, indexed or not.
func TestExpiredMailIsNotFound(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t, func(in *store.Inbox) { in.RetentionDays = 1 })
		s.receive(t, in, "Subject: indexed\n\nred")
		s.index(t, 10)
		s.receive(t, in, "Subject: waiting\n\nred")
		s.clock.Add(25 * time.Hour)
		s.receive(t, in, "Subject: fresh\n\nred")
		if _, err := s.store.ExpireInbox(t.Context(), in.Seq, store.Time{}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if d := cmp.Diff([]string{"fresh"}, s.found(t, "/v1/messages", url.Values{"q": {"red"}})); d != "" {
				t.Errorf("q (-want +got):\n%s", d)
			}
			s.index(t, 10)
		}
		if d := cmp.Diff([]string{"fresh", "waiting", "indexed"}, s.found(t, "/v1/messages", nil)); d != "" {
			t.Errorf("without q (-want +got):\n%s", d)
		}
		if got := s.found(t, "/v1/messages", url.Values{"q": {strings.Repeat("é", 200)}}); len(got) > 0 {
			t.Errorf("found %q by a word of none", got)
		}
	})
}
