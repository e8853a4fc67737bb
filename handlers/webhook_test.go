package handlers_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
)

// anyTarget accepts all URLs except those of one host.
type anyTarget struct{}

func (anyTarget) Check(_ context.Context, url string) error {
	if strings.Contains(url, "private.example") {
		return errors.New("must be at a public address")
	}
	return nil
}

// stubTester simulates the endpoints. Those with the path /dead fail.
type stubTester struct{ store *store.Store }

func (s stubTester) Test(ctx context.Context, w store.Webhook) (store.DeliveryResult, error) {
	c, err := s.store.StartTest(ctx, w, time.Minute)
	if err != nil {
		return store.DeliveryResult{}, err
	}
	status, body, took := http.StatusOK, "fine", int64(12)
	r := store.DeliveryResult{
		Seq: c.Seq, EndpointSeq: c.EndpointSeq, Fence: c.Fence, Status: store.DeliverySucceeded,
		StatusCode: &status, Body: &body, DurationMs: &took,
	}
	if strings.HasSuffix(w.URL, "/dead") {
		fault := "the connection failed"
		r.Status, r.StatusCode, r.Body, r.Error = store.DeliveryFailed, nil, nil, &fault
	}
	return r, s.store.RecordDelivery(ctx, r)
}

func (s *server) newWebhook(t *testing.T, fields string, opts ...option) response {
	t.Helper()
	return s.do(t, http.MethodPost, "/v1/webhooks", `{"url":"https://hooks.example/mail"`+fields+`}`, opts...).want(t, http.StatusCreated)
}

func TestWebhookLifecycle(t *testing.T) {
	s := serve(t)
	made := s.newWebhook(t, `,"events":["message.received"]`)
	path := "/v1/webhooks/" + made.str(t, "id")
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(made.str(t, "secret"), "whsec_"))
	if err != nil || len(key) != 32 {
		t.Errorf("the secret %q is not of 32 bytes: %v", made.str(t, "secret"), err)
	}
	got := s.do(t, http.MethodGet, path, "").want(t, http.StatusOK)
	got.wantAt(t, "events", `["message.received"]`)
	if strings.Contains(string(got.body), "secret") {
		t.Errorf("the secret is shown twice: %s", got.body)
	}
	s.do(t, http.MethodPatch, path, `{"active":false}`).want(t, http.StatusOK).wantAt(t, "active", `false`)
	s.do(t, http.MethodGet, path, "").wantAt(t, "url", `"https://hooks.example/mail"`)

	turned := s.do(t, http.MethodPost, path+"/rotate-secret", "").want(t, http.StatusOK)
	turned.wantAt(t, "previous_secret_expires_at", `"2026-09-24T10:00:00.000Z"`)
	if turned.str(t, "secret") == made.str(t, "secret") {
		t.Error("the secret has stayed the same")
	}
	s.do(t, http.MethodDelete, path, "").want(t, http.StatusOK).wantAt(t, "deleted", `true`)
	s.do(t, http.MethodGet, path, "").want(t, http.StatusNotFound)
	s.do(t, http.MethodDelete, path, "").want(t, http.StatusNotFound)
}

// The values of header fields are never shown, and do not go to another host.
func TestWebhookHeaders(t *testing.T) {
	s := serve(t)
	made := s.newWebhook(t, `,"headers":{"Authorization":"Bearer abc","X-Team":"mail"}`)
	path := "/v1/webhooks/" + made.str(t, "id")
	sent := func() map[string]string {
		w, err := s.store.Webhook(t.Context(), s.account, made.str(t, "id"))
		must(t, err)
		headers, err := s.store.WebhookHeaders(w)
		must(t, err)
		return headers
	}
	s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).wantAt(t, "headers", `{"Authorization":"***","X-Team":"***"}`)
	if got := sent(); !maps.Equal(got, map[string]string{"Authorization": "Bearer abc", "X-Team": "mail"}) {
		t.Errorf("the headers are %v", got)
	}
	s.do(t, http.MethodPatch, path, `{"url":"https://hooks.example/other"}`).want(t, http.StatusOK).wantAt(t, "headers", `{"Authorization":"***","X-Team":"***"}`)
	s.do(t, http.MethodPatch, path, `{"headers":{"X-Team":"web"}}`).want(t, http.StatusOK).wantAt(t, "headers", `{"X-Team":"***"}`)
	s.do(t, http.MethodPatch, path, `{"url":"https://others.example/mail"}`).want(t, http.StatusOK).wantAt(t, "headers", `{}`)
	s.do(t, http.MethodPatch, path, `{"url":"https://hooks.example/mail","headers":{"X-Team":"all"}}`).want(t, http.StatusOK)
	if got := sent()["X-Team"]; got != "all" {
		t.Errorf("X-Team: %s", got)
	}
	s.do(t, http.MethodPatch, path, `{"headers":null}`).want(t, http.StatusOK).wantAt(t, "headers", `{}`)
	for headers, param := range map[string]string{
		`{"host":"a"}`: "headers.host", `{"Webhook-Id":"a"}`: "headers.Webhook-Id", `{"SVIX-Id":"a"}`: "headers.SVIX-Id", `{"Content-Type":"a"}`: "headers.Content-Type",
		`{"connection":"close"}`: "headers.connection", `{"X-A":"a\r\nb"}`: "headers.X-A", `{"X-A":" "}`: "headers.X-A", `{"a b":"c"}`: "headers.a b",
	} {
		s.do(t, http.MethodPatch, path, `{"headers":`+headers+`}`, broken).wantError(t, http.StatusBadRequest, "invalid_request "+param)
	}
}

// Null events mean all types, now and later, on create and update. GET shows
// them as null.
func TestWebhookEventsNullMeansAllTypes(t *testing.T) {
	s := serve(t)
	for _, given := range []string{``, `,"events":null`} {
		s.newWebhook(t, given).wantAt(t, "events", `null`)
	}
	made := s.newWebhook(t, `,"events":["email.bounced"]`)
	path := "/v1/webhooks/" + made.str(t, "id")
	s.do(t, http.MethodPatch, path, `{"events":null}`).want(t, http.StatusOK).wantAt(t, "events", `null`)
	s.do(t, http.MethodPatch, path, `{"active":true}`).want(t, http.StatusOK).wantAt(t, "events", `null`)
	s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).wantAt(t, "events", `null`)
	w, err := s.store.Webhook(t.Context(), s.account, made.str(t, "id"))
	must(t, err)
	s.receive(t, s.newInbox(t), "Subject: now of interest")
	if got := s.bodies(t, w); len(got[store.EventMessageReceived]) != 1 || !w.Wants("message.of_a_later_version", 0) {
		t.Errorf("after null the endpoint gets %d events", len(got))
	}
	s.do(t, http.MethodPatch, path, `{"events":["draft.sent"]}`).want(t, http.StatusOK).wantAt(t, "events", `["draft.sent"]`)
}

func TestWebhookTestIsListedAsADelivery(t *testing.T) {
	s := serve(t)
	path := "/v1/webhooks/" + s.newWebhook(t, ``).str(t, "id")
	s.do(t, http.MethodPost, path+"/test", "").want(t, http.StatusOK).wantAt(t, "success", `true`)
	s.do(t, http.MethodPatch, path, `{"url":"https://hooks.example/dead"}`).want(t, http.StatusOK)
	dead := s.do(t, http.MethodPost, path+"/test", "").want(t, http.StatusOK)
	dead.wantAt(t, "status_code", `0`)
	dead.wantAt(t, "error", `"the connection failed"`)

	list := s.do(t, http.MethodGet, path+"/deliveries?status=failed&event_type=webhook.test", "").want(t, http.StatusOK)
	list.wantAt(t, "data.0.last_error", `"the connection failed"`)
	list.wantAt(t, "data.0.next_attempt_at", `null`)
	id := list.str(t, "data.0.id")
	s.do(t, http.MethodGet, path+"/deliveries?event_type=message.sent", "").want(t, http.StatusOK).wantAt(t, "data", `[]`)

	again := s.do(t, http.MethodPost, path+"/deliveries/"+id+"/retry", "").want(t, http.StatusAccepted)
	again.wantAt(t, "status", `"pending"`)
	again.wantAt(t, "next_attempt_at", `"2026-09-23T10:00:00.000Z"`)
	s.do(t, http.MethodPost, path+"/deliveries/dlv_none/retry", "").want(t, http.StatusNotFound)
	s.do(t, http.MethodPatch, path, `{"active":false}`).want(t, http.StatusOK)
	s.do(t, http.MethodPost, path+"/deliveries/"+id+"/retry", "").want(t, http.StatusConflict).wantAt(t, "error.code", `"webhook_disabled"`)
}

// An endpoint receives what a key with the scope to read its events may read. Without this
// scope, a key neither creates nor changes it, or sends it past events.
func TestWebhooksNeedTheScopeOfTheirEvents(t *testing.T) {
	s := serve(t)
	s.receive(t, s.newInbox(t), "Subject: Your code")
	const others = `["domain.health.degraded","webhook.test"]`
	for _, tt := range []struct {
		events string
		reads  []string // scopes that suffice, beside webhooks:manage and admin
	}{
		{`null`, []string{"read"}},
		{`["message.received"]`, []string{"read"}},
		{`["domain.health.degraded","message.blocked"]`, []string{"read"}},
		{`["draft.pending"]`, []string{"read"}},
		{`["email.queued"]`, []string{"read", "emails:read"}},
		{others, []string{"codes:read", "contacts:read", "domains:read", "send", "emails:read", "read"}},
	} {
		byOwner := s.newKey(t, scopes("webhooks:manage", "read"))
		path := "/v1/webhooks/" + s.newWebhook(t, `,"events":`+tt.events, as(byOwner)).str(t, "id")
		replay := `{"since":"` + begin.Add(-time.Hour).Format(time.RFC3339) + `"}`
		s.do(t, http.MethodPost, path+"/test", "").want(t, http.StatusOK)
		delivery := s.do(t, http.MethodGet, path+"/deliveries", "").want(t, http.StatusOK)
		retry := path + "/deliveries/" + delivery.str(t, "data.0.id") + "/retry"
		for _, more := range []string{"codes:read", "contacts:read", "domains:read", "send", "emails:read", "read", "admin"} {
			by := as(s.newKey(t, scopes("webhooks:manage", more)))
			for _, c := range []struct {
				method, path, body string
				want               int
			}{
				{http.MethodPost, "/v1/webhooks", `{"url":"https://hooks.example/new","events":` + tt.events + `}`, http.StatusCreated},
				{http.MethodPatch, path, `{"active":true}`, http.StatusOK},
				{http.MethodPatch, path, `{"events":` + others + `}`, http.StatusOK},
				{http.MethodPost, path + "/rotate-secret", "", http.StatusOK},
				{http.MethodPost, path + "/replay", replay, http.StatusAccepted},
				{http.MethodPost, retry, "", http.StatusAccepted},
			} {
				if more == "admin" && c.want != http.StatusCreated {
					continue // it would take the endpoint over
				}
				res := s.do(t, c.method, c.path, c.body, by)
				if slices.Contains(tt.reads, more) || more == "admin" {
					res.want(t, c.want)
				} else {
					res.want(t, http.StatusForbidden).wantAt(t, "error.code", `"insufficient_scope"`)
				}
				switch {
				case res.status == http.StatusCreated:
					s.do(t, http.MethodDelete, "/v1/webhooks/"+res.str(t, "id"), "").want(t, http.StatusOK)
				case c.method == http.MethodPatch && res.status == http.StatusOK:
					s.do(t, http.MethodPatch, path, `{"events":`+tt.events+`}`, as(byOwner)).want(t, http.StatusOK)
				}
			}
		}
		// Without the scope, a key changes no endpoint so that it gets such events.
		if tt.events != others {
			free := "/v1/webhooks/" + s.newWebhook(t, `,"events":`+others, as(byOwner)).str(t, "id")
			s.do(t, http.MethodPatch, free, `{"events":`+tt.events+`}`, as(s.newKey(t, scopes("webhooks:manage")))).
				want(t, http.StatusForbidden).wantAt(t, "error.param", `"events"`)
		}
		s.do(t, http.MethodDelete, path, "", as(s.newKey(t, scopes("webhooks:manage")))).want(t, http.StatusOK)
	}
}

// A key with inbox_ids manages the endpoints of its own inboxes. Others do not
// exist for it.
func TestWebhooksOfInboxes(t *testing.T) {
	s := serve(t)
	one, two, other := s.newInbox(t), s.newInbox(t), s.newInbox(t)
	key := as(s.newKey(t, scopes("webhooks:manage", "read"), onlyInboxes(one.ID, two.ID)))
	ids := func(in ...store.Inbox) string {
		var all []string
		for _, i := range in {
			all = append(all, i.ID)
		}
		b, err := json.Marshal(all)
		must(t, err)
		return string(b)
	}
	own := s.newWebhook(t, `,"inbox_ids":`+ids(one), key)
	own.wantAt(t, "inbox_ids", ids(one))
	s.newWebhook(t, ``, key).wantAt(t, "inbox_ids", ids(one, two))
	all, mixed := s.newWebhook(t, ``), s.newWebhook(t, `,"inbox_ids":`+ids(one, other))
	all.wantAt(t, "inbox_ids", `null`)
	mixed.wantAt(t, "inbox_ids", ids(one, other))
	create := func(inboxes string) response {
		return s.do(t, http.MethodPost, "/v1/webhooks", `{"url":"https://hooks.example/","inbox_ids":`+inboxes+`}`, key)
	}
	create(ids(one, other)).wantError(t, http.StatusBadRequest, "invalid_request inbox_ids[1]")
	create(`null`).wantError(t, http.StatusForbidden, "insufficient_scope")
	for _, w := range []response{all, mixed} {
		path := "/v1/webhooks/" + w.str(t, "id")
		for _, c := range []struct{ method, path, body string }{
			{"GET", "", ""}, {"PATCH", "", `{"active":false}`}, {"DELETE", "", ""}, {"POST", "/test", ""}, {"POST", "/rotate-secret", ""},
			{"GET", "/deliveries", ""}, {"POST", "/replay", `{"since":"2026-01-01T00:00:00Z"}`},
		} {
			s.do(t, c.method, path+c.path, c.body, key).wantError(t, http.StatusNotFound, "not_found")
		}
	}
	path := "/v1/webhooks/" + own.str(t, "id")
	s.do(t, http.MethodPatch, path, `{"inbox_ids":`+ids(two)+`}`, key).want(t, http.StatusOK).wantAt(t, "inbox_ids", ids(two))
	s.do(t, http.MethodPatch, path, `{"inbox_ids":`+ids(other)+`}`, key).wantError(t, http.StatusBadRequest, "invalid_request inbox_ids[0]")
	s.do(t, http.MethodPatch, path, `{"inbox_ids":null}`, key).wantError(t, http.StatusForbidden, "insufficient_scope")
	s.do(t, http.MethodPatch, path, `{"active":true}`, key).want(t, http.StatusOK).wantAt(t, "inbox_ids", ids(two))
	if got := s.pages(t, "/v1/webhooks", key); len(got) != 2 {
		t.Errorf("the key sees %d endpoints", len(got))
	}

	s.receive(t, one, "Subject: one")
	s.receive(t, two, "Subject: two")
	got := s.do(t, http.MethodGet, path+"/deliveries", "", key).want(t, http.StatusOK).strs(t, "data", "event_type")
	if len(got) != 1 || got[0] != "message.received" {
		t.Errorf("delivered %q", got)
	}
	s.do(t, http.MethodPatch, path, `{"inbox_ids":null}`).want(t, http.StatusOK).wantAt(t, "inbox_ids", `null`)
}

// The log has the events of the stream, in its order. A replay queues those that
// the endpoint wants again, in order, with the same ids.
func TestEventLogAndReplay(t *testing.T) {
	s := serve(t)
	one, two := s.newInbox(t), s.newInbox(t)
	w := s.newWebhook(t, `,"inbox_ids":["`+one.ID+`"]`)
	var want []string
	var middle string
	for i := range 12 {
		s.clock.Add(time.Minute)
		if i == 6 {
			middle = s.clock.Now().UTC().Format(time.RFC3339)
		}
		in := one
		if i%3 == 2 {
			in = two
		}
		m := s.receive(t, in, fmt.Sprintf("Subject: %d", i))
		if in.ID == one.ID {
			want = append(want, m.ID)
		}
	}
	s.newDraft(t, s.newInbox(t, func(in *store.Inbox) { in.SendPolicy = store.PolicyApproval }), `{"to":"a@b.example","subject":"s","text":"t"}`)

	list := func(query string, opts ...option) (messages []string) {
		cursor := ""
		for {
			res := s.do(t, http.MethodGet, "/v1/events?limit=3&"+query+cursor, "", opts...).want(t, http.StatusOK)
			var page struct {
				Data    []struct{ Data struct{ ID string } }
				HasMore bool `json:"has_more"`
				Cursor  string
			}
			if err := json.Unmarshal(res.body, &page); err != nil || len(page.Data) > 3 || page.HasMore != (page.Cursor != "") {
				t.Fatalf("%v: %s", err, res.body)
			}
			for _, e := range page.Data {
				messages = append(messages, e.Data.ID)
			}
			if cursor = "&cursor=" + page.Cursor; !page.HasMore {
				return messages
			}
		}
	}
	if got := list("inbox_id=" + one.ID); !slices.Equal(got, want) {
		t.Errorf("the log of the inbox has %q, want %q", got, want)
	}
	if got := list("inbox_id=" + one.ID + "&since=" + middle); !slices.Equal(got, want[4:]) {
		t.Errorf("since the middle it has %q, want %q", got, want[4:])
	}
	if got := list("events=message.received", as(s.newKey(t, scopes("read"), onlyInboxes(one.ID)))); !slices.Equal(got, want) {
		t.Errorf("a bound key sees %q", got)
	}
	if got := list("events=message.received"); len(got) != 12 {
		t.Errorf("of one type it has %d events", len(got))
	}
	if got := list("events=draft.created"); len(got) != 1 {
		t.Errorf("of drafts it has %d events", len(got))
	}
	s.do(t, http.MethodGet, "/v1/events?inbox_id=ibx_0", "").want(t, http.StatusNotFound)

	path := "/v1/webhooks/" + w.str(t, "id")
	before := s.do(t, http.MethodGet, path+"/deliveries?limit=100", "").want(t, http.StatusOK).strs(t, "data", "event_id")
	s.do(t, http.MethodPost, path+"/replay", `{"since":"`+middle+`","types":["message.received"]}`).want(t, http.StatusAccepted).wantAt(t, "queued", `4`)
	s.do(t, http.MethodPost, path+"/replay", `{"since":"`+middle+`","types":["draft.created"]}`).want(t, http.StatusAccepted).wantAt(t, "queued", `0`)
	after := s.do(t, http.MethodGet, path+"/deliveries?limit=100", "").want(t, http.StatusOK).strs(t, "data", "event_id")
	if len(before) != 8 || len(after) != 12 || !slices.Equal(after[:4], before[:4]) || !slices.Equal(after[4:], before) {
		t.Errorf("before %q, after %q", before, after)
	}
	must(t, s.store.DeleteMessage(t.Context(), s.account, want[7]))
	s.do(t, http.MethodPost, path+"/replay", `{"since":"`+middle+`"}`).want(t, http.StatusAccepted).wantAt(t, "queued", `3`)
	s.do(t, http.MethodPatch, path, `{"active":false}`).want(t, http.StatusOK)
	s.do(t, http.MethodPost, path+"/replay", `{"since":"`+middle+`"}`).wantError(t, http.StatusConflict, "webhook_disabled")
}

// A revoked key turns off the endpoints that it created, and those whose URL it chose or whose
// secret it knows.
func TestRevokedKeyTurnsWebhooksOff(t *testing.T) {
	s := serve(t)
	const created, changed, on = "the key that created it was revoked", "the key that changed its URL or secret was revoked", ""
	secret := s.newKey(t, scopes("webhooks:manage", "read"))
	revoked, other := as(secret), as(s.newKey(t, scopes("webhooks:manage", "read")))
	admin := as(s.newKey(t, scopes("admin")))
	id := s.keyID(t, secret)
	type change struct {
		by   option
		body string // of a PATCH, or empty to rotate the secret
	}
	const two, three = `{"url":"https://hooks.example/two"}`, `{"url":"https://hooks.example/three"}`
	tests := []struct {
		name    string
		creator option
		changes []change
		why     string // it is off
	}{
		{"not changed", revoked, nil, created},
		{"changed by its creator", revoked, []change{{revoked, two}}, created},
		{"changed by another key", revoked, []change{{other, two}}, created},
		{"turned off and on by another key", revoked, []change{{revoked, `{"active":false}`}, {other, `{"active":true}`}}, on},
		{"changed by an admin key", revoked, []change{{admin, `{}`}}, on},
		{"rotated by an admin key", revoked, []change{{admin, ""}}, on},
		{"rotated by another key", revoked, []change{{other, ""}}, created},
		{"of another key", other, nil, on},
		{"another URL", other, []change{{revoked, two}}, changed},
		{"another secret", other, []change{{revoked, ""}}, changed},
		{"the same URL", other, []change{{revoked, `{"url":"https://hooks.example/mail"}`}}, on},
		{"other events", other, []change{{revoked, `{"events":["message.received"]}`}}, on},
		{"another URL, and another secret by another key", other, []change{{revoked, two}, {other, ""}}, changed},
		{"another URL, replaced by another key", other, []change{{revoked, two}, {other, three}}, on},
		{"another URL, kept by an admin key", other, []change{{revoked, two}, {admin, `{}`}}, on},
		{"another secret, replaced by an admin key", other, []change{{revoked, ""}, {admin, ""}}, on},
	}
	paths := make([]string, len(tests))
	for i, tt := range tests {
		paths[i] = "/v1/webhooks/" + s.newWebhook(t, ``, tt.creator).str(t, "id")
		for _, c := range tt.changes {
			if c.body == "" {
				s.do(t, http.MethodPost, paths[i]+"/rotate-secret", "", c.by).want(t, http.StatusOK)
			} else {
				s.do(t, http.MethodPatch, paths[i], c.body, c.by).want(t, http.StatusOK)
			}
		}
	}
	s.do(t, http.MethodDelete, "/v1/keys/"+id, "").want(t, http.StatusOK)
	for i, tt := range tests {
		got := s.do(t, http.MethodGet, paths[i], "").want(t, http.StatusOK)
		why, _ := got.at(t, "disabled_reason").(string)
		if why != tt.why || got.at(t, "active") != (tt.why == on) {
			t.Errorf("%s: active %v, off because %q, want %q", tt.name, got.at(t, "active"), why, tt.why)
		}
	}
	s.do(t, http.MethodPatch, paths[0], `{"active":true}`).want(t, http.StatusOK).wantAt(t, "disabled_reason", `null`)

	// A key revoked while it creates or changes an endpoint does neither.
	late := store.Webhook{AccountID: s.account, URL: "https://hooks.example/", Active: true, OwnerKey: &id}
	w := strings.TrimPrefix(paths[7], "/v1/webhooks/")
	_, _, create := s.store.CreateWebhook(t.Context(), late, nil)
	_, update := s.store.UpdateWebhook(t.Context(), s.account, w, &id, func(w *store.Webhook) error { w.URLBy = &id; return nil })
	_, _, rotate := s.store.RotateWebhook(t.Context(), s.account, w, &id, func(*store.Webhook) error { return nil })
	for what, err := range map[string]error{"create": create, "update": update, "rotate": rotate} {
		if !errors.Is(err, store.ErrState) {
			t.Errorf("%s by a revoked key: %v", what, err)
		}
	}
}

// The URL and the secret of an endpoint of a person or an admin key need the scope admin.
func TestWebhooksOfAdminsKeepTheirURLAndSecret(t *testing.T) {
	s := serve(t)
	adminSecret := s.newKey(t, scopes("admin"))
	admin, other := as(adminSecret), as(s.newKey(t, scopes("webhooks:manage", "read")))
	created := "/v1/webhooks/" + s.newWebhook(t, ``, admin).str(t, "id")
	adopted := "/v1/webhooks/" + s.newWebhook(t, ``, other).str(t, "id")
	s.do(t, http.MethodPatch, adopted, `{}`, admin).want(t, http.StatusOK)
	const another = `{"url":"https://hooks.example/two"}`
	refused := func(path string) {
		t.Helper()
		s.do(t, http.MethodPatch, path, another, other).wantError(t, http.StatusForbidden, "insufficient_scope url")
		s.do(t, http.MethodPost, path+"/rotate-secret", "", other).wantError(t, http.StatusForbidden, "insufficient_scope")
		s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).wantAt(t, "url", `"https://hooks.example/mail"`)
	}
	for _, path := range []string{created, adopted} {
		refused(path)
		for _, body := range []string{`{"active":false}`, `{"active":true,"url":"https://hooks.example/mail","events":["message.received"]}`} {
			s.do(t, http.MethodPatch, path, body, other).want(t, http.StatusOK)
		}
		refused(path) // turning it off and on has not made it the key's
	}
	s.do(t, http.MethodPatch, adopted, another, admin).want(t, http.StatusOK)

	// An endpoint that is off because its key is revoked has no owner.
	orphan := "/v1/webhooks/" + s.newWebhook(t, ``, admin).str(t, "id")
	s.do(t, http.MethodDelete, "/v1/keys/"+s.keyID(t, adminSecret), "").want(t, http.StatusOK)
	s.do(t, http.MethodGet, orphan, "").want(t, http.StatusOK).wantAt(t, "active", `false`)
	s.do(t, http.MethodPatch, orphan, `{"url":"https://hooks.example/two","active":true}`, other).want(t, http.StatusOK)
}

// Who owns an endpoint, and what it receives, is checked when it is changed: an admin may
// take it over, or widen it, in the meantime.
func TestWebhookOwnerIsCheckedWithTheChange(t *testing.T) {
	var targets slowTargets
	s := serve(t, func(cfg *handlers.Config) { cfg.WebhookTargets = &targets })
	in := s.newInbox(t)
	admin := as(s.newKey(t, scopes("admin")))
	other := as(s.newKey(t, scopes("webhooks:manage", "read"), onlyInboxes(in.ID)))
	for _, tt := range []struct {
		meanwhile string
		status    int
		code      string
	}{
		{`{}`, http.StatusForbidden, "insufficient_scope url"}, // the admin takes it over
		{`{"inbox_ids":null}`, http.StatusNotFound, "not_found"},
	} {
		path := "/v1/webhooks/" + s.newWebhook(t, ``, other).str(t, "id")
		url := "https://hooks.example" + path
		targets.Store(url, func() { s.do(t, http.MethodPatch, path, tt.meanwhile, admin).want(t, http.StatusOK) })
		s.do(t, http.MethodPatch, path, `{"url":"`+url+`"}`, other).wantError(t, tt.status, tt.code)
		s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).wantAt(t, "url", `"https://hooks.example/mail"`)
	}
}

// slowTargets do something while their URL is checked.
type slowTargets struct{ sync.Map }

func (s *slowTargets) Check(_ context.Context, url string) error {
	if meanwhile, ok := s.LoadAndDelete(url); ok {
		meanwhile.(func())()
	}
	return nil
}
