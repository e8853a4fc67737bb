package handlers_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// listed is an account with two inboxes and several messages, a minute apart.
type listed struct {
	one, two store.Inbox
	byName   map[string]store.Message
}

func (s *server) listed(t *testing.T) listed {
	t.Helper()
	l := listed{one: s.newInbox(t), two: s.newInbox(t), byName: map[string]store.Message{}}
	add := func(name string, m store.Message) {
		l.byName[name] = m
		s.clock.Add(time.Minute)
	}
	add("welcome", s.receive(t, l.one, "From: Ann <Ann@Out.example>\nSubject: Welcome to Österreich"))
	add("code", s.receive(t, l.one, "From: no-reply@mail.github.example\nSubject: Your code\n\nYour code is 482913."))
	add("sent", storetest.Sent(t, s.store, l.one, []string{"ann@out.example"}, func(m *store.NewMessage) { m.Subject = "Re: Welcome" }))
	add("reply", s.receive(t, l.one, "From: ann@out.example\nSubject: 100%_sure\nIn-Reply-To: "+l.byName["sent"].HeaderID))
	add("other", s.receive(t, l.two, "From: ann@out.example\nSubject: Welcome too"))
	return l
}

// names returns the names in l of a page of messages.
func (l listed) names(t *testing.T, r response) []string {
	t.Helper()
	out := []string{}
	for _, id := range r.want(t, http.StatusOK).strs(t, "data", "id") {
		for name, m := range l.byName {
			if m.ID == id {
				out = append(out, name)
			}
		}
	}
	return out
}

func TestListMessagesFilters(t *testing.T) {
	s := serve(t)
	l := s.listed(t)
	minute := func(n int) string { return url.QueryEscape(after(time.Duration(n) * time.Minute)) }
	tests := []struct {
		name, query string
		want        []string // newest first
	}{
		{"no filter", "", []string{"reply", "sent", "code", "welcome"}},
		{"received", "direction=in", []string{"reply", "code", "welcome"}},
		{"sent", "direction=out", []string{"sent"}},
		{"from an address in any case", "from=ANN@out.EXAMPLE", []string{"reply", "welcome"}},
		{"from a part of an address", "from=ann@out", nil},
		{"from a domain", "from=" + url.QueryEscape("*@out.example"), []string{"reply", "welcome"}},
		{"from below a domain", "from=" + url.QueryEscape("*@*.github.example"), []string{"code"}},
		{"from a domain, not below it", "from=" + url.QueryEscape("*@github.example"), nil},
		{"from a name with a wildcard", "from=" + url.QueryEscape("no-reply@*"), []string{"code"}},
		{"a percent sign is not a wildcard", "from=" + url.QueryEscape("%@out.example"), nil},
		{"an underscore is not a wildcard", "from=" + url.QueryEscape("an_@out.example"), nil},
		{"from our own inbox", "from=" + l.one.Address, []string{"sent"}},
		{"an empty from", "from=", []string{"reply", "sent", "code", "welcome"}},
		{"a part of the subject in any case", "subject=WELCOME", []string{"sent", "welcome"}},
		{"a subject beyond ASCII in any case", "subject=" + url.QueryEscape("ÖSTERR"), []string{"welcome"}},
		{"a subject with SQL wildcards", "subject=" + url.QueryEscape("100%_"), []string{"reply"}},
		{"a percent sign in a subject is not a wildcard", "subject=" + url.QueryEscape("1%sure"), nil},
		{"a thread", "thread_id=" + l.byName["sent"].ThreadID, []string{"reply", "sent"}},
		{"an unknown thread", "thread_id=thr_0", nil},
		{"since a time, inclusive", "since=" + minute(2), []string{"reply", "sent"}},
		{"since a millisecond later", "since=" + url.QueryEscape(after(2*time.Minute+time.Millisecond)), []string{"reply"}},
		{"since a time in another zone", "since=" + url.QueryEscape("2026-09-23T12:03:00+02:00"), []string{"reply"}},
		{"since now", "since=" + minute(60), nil},
		{"all filters must match", "direction=in&subject=welcome&since=" + minute(0), []string{"welcome"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := append([]string{}, tt.want...)
			if d := cmp.Diff(want, l.names(t, s.do(t, http.MethodGet, "/v1/inboxes/"+l.one.ID+"/messages?"+tt.query, ""))); d != "" {
				t.Errorf("of the inbox: -want +got:\n%s", d)
			}
			across := "/v1/messages?inbox_id=" + l.one.ID + "&" + tt.query
			if d := cmp.Diff(want, l.names(t, s.do(t, http.MethodGet, across, ""))); d != "" {
				t.Errorf("of all inboxes: -want +got:\n%s", d)
			}
		})
	}
}

func TestListMessagesAcrossInboxes(t *testing.T) {
	s := serve(t)
	l := s.listed(t)
	for query, want := range map[string][]string{
		"":                            {"other", "reply", "sent", "code", "welcome"},
		"subject=welcome":             {"other", "sent", "welcome"},
		"status=received":             {"other", "reply", "code", "welcome"},
		"status=queued":               {"sent"},
		"status=delivered":            {},
		"inbox_id=" + l.two.ID:        {"other"},
		"direction=out&status=queued": {"sent"},
		"to=ANN@out.example":          {"sent"},
		"to=" + l.one.Address:         {},
		"until=" + url.QueryEscape(after(2*time.Minute)): {"code", "welcome"},
	} {
		if d := cmp.Diff(want, l.names(t, s.do(t, http.MethodGet, "/v1/messages?"+query, ""))); d != "" {
			t.Errorf("%s: -want +got:\n%s", query, d)
		}
	}
	s.do(t, http.MethodGet, "/v1/messages?inbox_id=ibx_0", "").wantError(t, http.StatusNotFound, "not_found inbox_id")
	// Only the list across inboxes has this filter.
	s.do(t, http.MethodGet, "/v1/inboxes/"+l.one.ID+"/messages?status=queued", "").wantError(t, http.StatusBadRequest, "invalid_request status")
}

func TestListMessagesPages(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	var want []string
	for i := range 7 {
		want = append([]string{s.receive(t, in, fmt.Sprintf("Subject: Mail %d", i)).ID}, want...)
		if i == 3 { // some at the same time, some not
			s.clock.Add(time.Second)
		}
	}
	list := "/v1/inboxes/" + in.ID + "/messages"
	for _, path := range []string{list + "?limit=3", list + "?limit=7", list + "?limit=1", "/v1/messages?limit=2"} {
		if d := cmp.Diff(want, s.pages(t, path)); d != "" {
			t.Errorf("%s: -want +got:\n%s", path, d)
		}
	}
	first := s.do(t, http.MethodGet, list+"?limit=3", "").want(t, http.StatusOK)
	s.receive(t, in, "Subject: Between the pages")
	second := s.do(t, http.MethodGet, list+"?limit=3&cursor="+first.str(t, "cursor"), "").want(t, http.StatusOK)
	if d := cmp.Diff(want[3:6], second.strs(t, "data", "id")); d != "" {
		t.Errorf("new mail moves the pages: -want +got:\n%s", d)
	}
	other := s.do(t, http.MethodGet, list+"?limit=2&cursor="+first.str(t, "cursor"), "").want(t, http.StatusOK)
	if d := cmp.Diff(want[3:5], other.strs(t, "data", "id")); d != "" {
		t.Errorf("another limit: -want +got:\n%s", d)
	}
}
