package handlers_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
)

// Labels have one form, and each change of them says what it means. Lists filter by them.
func TestLabels(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	m := s.receive(t, in, "Subject: Offer")
	path := "/v1/messages/" + m.ID
	twenty := make([]string, store.MaxLabels)
	for i := range twenty {
		twenty[i] = fmt.Sprintf("label-%02d", i)
	}
	for _, step := range []struct {
		about, body string
		want        []string // nil: refused
		param       string
	}{
		{"no change", `{}`, []string{}, ""},
		{"normal form, in order, each once", `{"labels":[" Needs  Review ","URGENT","urgent","Résumé"]}`, []string{"needs review", "résumé", "urgent"}, ""},
		{"one more, one less", `{"add_labels":["Paid"],"remove_labels":["URGENT","other"]}`, []string{"needs review", "paid", "résumé"}, ""},
		{"a list, and a change of it", `{"labels":["a"],"add_labels":["b","c"],"remove_labels":["c"]}`, []string{"a", "b"}, ""},
		{"wildcards are text", `{"labels":["100%_"]}`, []string{"100%_"}, ""},
		{"none", `{"labels":[]}`, []string{}, ""},
		{"nothing but spaces", `{"labels":["  "]}`, nil, "labels[0]"},
		{"nothing but wide spaces", `{"add_labels":[" "]}`, nil, "add_labels[0]"},
		{"a quote", `{"labels":["a\"b"]}`, nil, "labels[0]"},
		{"a line break", `{"labels":["a\nb"]}`, nil, "labels[0]"},
		{"too long", `{"labels":["` + strings.Repeat("a", 65) + `"]}`, nil, "labels[0]"},
		{"as many as may be", `{"labels":["` + strings.Join(twenty, `","`) + `"]}`, twenty, ""},
		{"one too many", `{"add_labels":["other"]}`, nil, "add_labels"},
		{"read is not a word", `{"labels":["a"],"read":"yes"}`, nil, "read"},
	} {
		res := s.do(t, http.MethodPatch, path, step.body, brokenIf(http.StatusBadRequest))
		if step.want == nil {
			res.wantError(t, http.StatusBadRequest, "invalid_request "+step.param)
			continue
		}
		if got, want := res.want(t, http.StatusOK).at(t, "labels"), fmt.Sprint(step.want); fmt.Sprint(got) != want {
			t.Errorf("%s: labels are %q, want %q", step.about, got, want)
		}
	}

	s.do(t, http.MethodPatch, path, `{"labels":["100%_","urgent"]}`).want(t, http.StatusOK)
	other := s.receive(t, in, "Subject: Offer\n\nAbout urgent things")
	s.do(t, http.MethodPatch, "/v1/threads/"+other.ThreadID, `{"add_labels":["Urgent"]}`).want(t, http.StatusOK)
	for _, list := range []string{"/v1/messages?", "/v1/messages?inbox_id=" + in.ID + "&", "/v1/inboxes/" + in.ID + "/messages?", "/v1/messages?q=offer&"} {
		for label, want := range map[string][]string{"URGENT": {m.ID}, "urg": nil, "100%25_": {m.ID}, "100__": nil, "%25": nil} {
			if got := s.do(t, http.MethodGet, list+"label="+label, "").want(t, http.StatusOK).strs(t, "data", "id"); !slices.Equal(got, want) {
				t.Errorf("%slabel=%s: %q, want %q", list, label, got, want)
			}
		}
	}
	threads := s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/threads?label=urgent", "").want(t, http.StatusOK)
	if d := cmp.Diff([]string{other.ThreadID}, threads.strs(t, "data", "id")); d != "" {
		t.Errorf("threads by label (-want +got):\n%s", d)
	}
	threads.wantAt(t, "data.0.labels", `["urgent"]`)
}

// A message is read since the first time that someone read it, until it is marked as
// unread. Sent messages are not read.
func TestReadState(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	m := s.receive(t, in, "From: ann@out.example\nSubject: Offer\nMessage-ID: <1@out.example>")
	sent := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"No."}`).want(t, http.StatusCreated).str(t, "id")
	mark := func(path, body string) { s.do(t, http.MethodPatch, path, body).want(t, http.StatusOK) }
	want := func(id, at string) {
		t.Helper()
		s.do(t, http.MethodGet, "/v1/messages/"+id, "").want(t, http.StatusOK).wantAt(t, "read_at", at)
	}
	want(m.ID, "null")
	first := fmt.Sprintf("%q", after(0))
	for _, path := range []string{"/v1/messages/" + m.ID, "/v1/threads/" + m.ThreadID, "/v1/messages/" + m.ID} {
		mark(path, `{"read":true}`)
		want(m.ID, first)
		s.clock.Add(time.Minute)
	}
	mark("/v1/messages/"+sent, `{"read":true}`)
	want(sent, "null")
	mark("/v1/threads/"+m.ThreadID, `{"read":false}`)
	want(m.ID, "null")
}

// A claim hands out each message once, the oldest first, until it ends by itself, is
// released or done. Old tokens change nothing.
func TestClaims(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	var ids []string
	for _, subject := range []string{"First", "Second code", "Third"} {
		ids = append(ids, s.receive(t, in, "From: ann@out.example\nSubject: "+subject).ID)
		s.clock.Add(time.Second)
	}
	s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"ann@out.example","subject":"s","text":"t"}`).want(t, http.StatusCreated)
	claim := func(about, body, id string, token int) {
		t.Helper()
		res := s.do(t, http.MethodPost, "/v1/messages/claim", body).want(t, http.StatusOK)
		if id == "" {
			res.wantAt(t, "message", "null")
			res.wantAt(t, "claim", "null")
			return
		}
		if got := res.str(t, "message.id"); got != id || res.str(t, "claim.message_id") != id {
			t.Errorf("%s: got %s, want %s of %q", about, got, id, ids)
		}
		res.wantAt(t, "claim.token", fmt.Sprint(token))
	}
	update := func(id string, token int, action string) response {
		t.Helper()
		return s.do(t, http.MethodPost, "/v1/messages/"+id+"/claim", fmt.Sprintf(`{"token":%d,"action":%q,"seconds":60}`, token, action))
	}
	lost := func(about, id string, token int) {
		t.Helper()
		for _, action := range []string{"extend", "release", "done"} {
			if res := update(id, token, action); res.status != http.StatusConflict {
				t.Errorf("%s: %s got %d %s", about, action, res.status, res.body)
			}
		}
	}
	of := `"inbox_id":"` + in.ID + `","seconds":60`
	lost("never claimed", ids[0], 1)
	claim("the oldest of all inboxes", `{"seconds":60}`, ids[0], 1)
	claim("the next of the inbox", "{"+of+"}", ids[1], 1)
	claim("no match", `{"subject":"first"}`, "", 0)
	claim("a match", `{"subject":"THIRD","from":"*@out.example",`+of+`}`, ids[2], 1)
	claim("all are claimed", "{"+of+"}", "", 0)
	lost("a token of no claim", ids[0], 2)

	s.clock.Add(30 * time.Second)
	update(ids[0], 1, "extend").want(t, http.StatusOK).wantAt(t, "status", `"claimed"`)
	update(ids[1], 1, "release").want(t, http.StatusOK).wantAt(t, "expires_at", "null")
	lost("released", ids[1], 1)
	s.clock.Add(31 * time.Second)
	claim("the released one", "{"+of+"}", ids[1], 3)
	claim("the one whose claim ended", "{"+of+"}", ids[2], 2)
	lost("an old token", ids[2], 1)
	claim("one is extended", "{"+of+"}", "", 0)
	for range 2 {
		update(ids[0], 1, "done").want(t, http.StatusOK).wantAt(t, "status", `"done"`)
	}
	if res := update(ids[0], 1, "extend"); res.status != http.StatusConflict {
		t.Errorf("extend what is done: %d %s", res.status, res.body)
	}
	s.clock.Add(time.Hour)
	update(ids[1], 3, "extend").want(t, http.StatusOK) // no one has taken it
	claim("what is not done", `{"thread_id":"`+s.messageField(t, ids[2], "thread_id")+`"}`, ids[2], 3)
	claim("one is done, one extended", "{"+of+"}", "", 0)
	s.do(t, http.MethodPatch, "/v1/messages/"+ids[1], `{"labels":["urgent"]}`).want(t, http.StatusOK)
	s.clock.Add(time.Hour)
	claim("with a label", `{"label":"Urgent",`+of+`}`, ids[1], 4)
}

func (s *server) messageField(t *testing.T, id, field string) string {
	t.Helper()
	return s.do(t, http.MethodGet, "/v1/messages/"+id, "").want(t, http.StatusOK).str(t, field)
}

// A message in quarantine, and one whose content is deleted, is not handed out. A released
// one is.
func TestClaimsOfWhatIsNotThere(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, func(in *store.Inbox) { in.RetentionDays = 1 })
	s.receive(t, in, "Subject: Old")
	s.clock.Add(25 * time.Hour)
	if _, err := s.store.ExpireInbox(t.Context(), in.Seq, store.Time{}); err != nil {
		t.Fatal(err)
	}
	s.addEntry(t, in, "inbound approve *@out.example").want(t, http.StatusCreated)
	held := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/simulate", `{"from":"a@out.example","subject":"Held","text":"t"}`).want(t, http.StatusCreated).str(t, "id")
	claim := `{"inbox_id":"` + in.ID + `"}`
	s.do(t, http.MethodPost, "/v1/messages/claim", claim).want(t, http.StatusOK).wantAt(t, "message", "null")
	s.do(t, http.MethodPost, "/v1/messages/"+held+"/release", "").want(t, http.StatusOK)
	s.do(t, http.MethodPost, "/v1/messages/claim", claim).want(t, http.StatusOK).wantAt(t, "message.subject", `"Held"`)
}

// A message whose retention has ended is not handed out, though its content is there until
// the next sweep.
func TestClaimSkipsWhatHasExpired(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, func(in *store.Inbox) { in.RetentionDays = 1 })
	s.receive(t, in, "Subject: Old\n\nA")
	s.clock.Add(25 * time.Hour)
	m := s.receive(t, in, "Subject: New\n\nB")
	claim := s.do(t, http.MethodPost, "/v1/messages/claim", `{"inbox_id":"`+in.ID+`"}`).want(t, http.StatusOK)
	claim.wantAt(t, "message.id", fmt.Sprintf("%q", m.ID))
}

// A claim that waits gets a message as soon as it arrives.
func TestClaimWaits(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	for _, body := range []string{`{"timeout":20,"inbox_id":"` + in.ID + `"}`, `{"timeout":20}`} {
		got, before := make(chan response, 1), s.waits.Load()
		go func() {
			if res, err := s.try(t.Context(), t, http.MethodPost, "/v1/messages/claim", body); err == nil {
				got <- res
			} else {
				t.Error(err)
				close(got)
			}
		}()
		waittest.Until(t, "the server has the claim", func() bool { return s.waits.Load() > before })
		m := s.receive(t, in, "Subject: New")
		res := <-got
		res.want(t, http.StatusOK).wantAt(t, "message.id", fmt.Sprintf("%q", m.ID))
	}
}

// Threads that become one have the labels of both.
func TestMergedThreadsUniteLabels(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	first := s.receive(t, in, "From: ann@out.example\nSubject: One\nMessage-ID: <1@out.example>")
	second := s.receive(t, in, "From: bob@out.example\nSubject: Two\nMessage-ID: <3@out.example>\nReferences: <2@out.example>")
	s.do(t, http.MethodPatch, "/v1/threads/"+first.ThreadID, `{"labels":["a","c"]}`).want(t, http.StatusOK)
	s.do(t, http.MethodPatch, "/v1/threads/"+second.ThreadID, `{"labels":["b","c"]}`).want(t, http.StatusOK)
	s.receive(t, in, "From: bob@out.example\nSubject: Both\nMessage-ID: <2@out.example>\nReferences: <1@out.example>")
	list := s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/threads", "").want(t, http.StatusOK)
	if got := list.strs(t, "data", "id"); len(got) != 1 {
		t.Fatalf("threads: %q", got)
	}
	list.wantAt(t, "data.0.labels", `["a","b","c"]`)
}
