package handlers_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/apikey"
	"github.com/postroom/postroom/store"
)

// doors are the two paths for the same keys.
var doors = []string{"/v1/api-keys", "/v1/keys"}

func TestCreateKey(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	tests := []struct {
		name, body string
		path, want string
	}{
		{"a name alone makes a live key", `{"name":"n"}`, "mode", `"live"`},
		{"a live key without scopes reaches everything", `{"name":"n"}`, "scopes", `["*"]`},
		{"a test key without scopes reaches everything", `{"name":"n","mode":"test"}`, "scopes", `["*"]`},
		{"a live key may have scopes", `{"name":"n","scopes":["read"]}`, "scopes", `["read"]`},
		{"a restricted key may have scopes of both areas", `{"name":"n","mode":"restricted","scopes":["send","emails:read"]}`, "scopes", `["send","emails:read"]`},
		{"no blocks means every address", `{"name":"n"}`, "allowed_ips", `[]`},
		{"an empty list of blocks too", `{"name":"n","allowed_ips":[]}`, "allowed_ips", `[]`},
		{"blocks are kept by their network", `{"name":"n","allowed_ips":["203.0.113.9/24","2001:db8::1/32"]}`, "allowed_ips", `["203.0.113.0/24","2001:db8::/32"]`},
		{"mapped blocks are IPv4", `{"name":"n","allowed_ips":["::ffff:203.0.113.9/120"]}`, "allowed_ips", `["203.0.113.0/24"]`},
		{"all inboxes is null", `{"name":"n","inbox_ids":null}`, "inbox_ids", `null`},
		{"some inboxes", `{"name":"n","inbox_ids":["` + in.ID + `"]}`, "inbox_ids", `["` + in.ID + `"]`},
		{"for ever is null", `{"name":"n","expires_at":null}`, "expires_at", `null`},
		{"for a day", `{"name":"n","expires_at":"` + after(24*time.Hour) + `"}`, "expires_at", `"` + after(24*time.Hour) + `"`},
	}
	for _, door := range doors {
		for _, tt := range tests {
			t.Run(door+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				res := s.do(t, http.MethodPost, door, tt.body).want(t, http.StatusCreated)
				res.wantAt(t, tt.path, tt.want)
				s.do(t, http.MethodGet, "/health", "", as(res.str(t, "key"))).want(t, http.StatusOK)
			})
		}
	}
}

func TestKeySecrets(t *testing.T) {
	s := serve(t)
	for mode, prefix := range map[string]string{"live": "sk_live_", "test": "sk_test_", "restricted": "sk_restr_"} {
		for _, door := range doors {
			res := s.do(t, http.MethodPost, door, `{"name":"n","scopes":["keys:manage"],"mode":"`+mode+`"}`).want(t, http.StatusCreated)
			secret, id := res.str(t, "key"), res.str(t, "id")
			if !strings.HasPrefix(secret, prefix) || !apikey.WellFormed(secret) {
				t.Errorf("secret %q of mode %s", secret, mode)
			}
			if !strings.HasPrefix(secret, res.str(t, "prefix")) || res.str(t, "key_hint") != "…"+secret[len(secret)-4:] {
				t.Errorf("prefix and hint of %q: %s", secret, res.body)
			}
			for _, list := range doors {
				got := s.do(t, http.MethodGet, list, "", as(secret)).want(t, http.StatusOK)
				if strings.Contains(string(got.body), secret) {
					t.Errorf("%s shows a secret", list)
				}
				i := slices.Index(got.strs(t, "data", "id"), id)
				if _, shown := got.get(t, fmt.Sprintf("data.%d.key", i)); i < 0 || shown {
					t.Errorf("%s: key %s at %d", list, id, i)
				}
			}
		}
	}
}

func TestCreateKeyRefuses(t *testing.T) {
	s := serve(t)
	in, other := s.newInbox(t), s.otherInbox(t)
	tests := []struct{ name, body, want string }{
		{"a line break in the name", `{"name":"a\nb"}`, "invalid_request name"},
		{"a restricted key without scopes", `{"name":"n","mode":"restricted"}`, "invalid_request scopes"},
		{"an address without its length", `{"name":"n","allowed_ips":["203.0.113.0/24","203.0.113.7"]}`, "invalid_request allowed_ips[1]"},
		{"no address", `{"name":"n","allowed_ips":["home/8"]}`, "invalid_request allowed_ips[0]"},
		{"a block that is too long", `{"name":"n","allowed_ips":["203.0.113.0/33"]}`, "invalid_request allowed_ips[0]"},
		{"an inbox of another account", `{"name":"n","inbox_ids":["` + in.ID + `","` + other.ID + `"]}`, "invalid_request inbox_ids[1]"},
		{"an expiry in the past", `{"name":"n","expires_at":"2020-01-01T00:00:00Z"}`, "invalid_request expires_at"},
	}
	for _, door := range doors {
		for _, tt := range tests {
			t.Run(door+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				s.do(t, http.MethodPost, door, tt.body, broken).wantError(t, http.StatusBadRequest, tt.want)
			})
		}
	}
}

func TestKeyCreatesNoKeyWithMoreRights(t *testing.T) {
	s := serve(t)
	one, two := s.newInbox(t), s.newInbox(t)
	expires := store.NewTime(begin.Add(24 * time.Hour))
	tests := []struct {
		name string
		by   func(*store.Key)
		body string
		want int
	}{
		{"the same scopes", scopes("keys:manage", "read"), `{"name":"n","scopes":["keys:manage","read"]}`, 201},
		{"a scope that another implies", scopes("keys:manage", "contacts:write"), `{"name":"n","scopes":["contacts:read"]}`, 201},
		{"an area of read", scopes("keys:manage", "read"), `{"name":"n","scopes":["emails:read","domains:read"]}`, 201},
		{"everything, by admin", scopes("admin"), `{"name":"n"}`, 201},
		{"admin, by everything", scopes("*"), `{"name":"n","scopes":["admin"]}`, 201},
		{"a scope more", scopes("keys:manage", "read"), `{"name":"n","scopes":["read","send"]}`, 403},
		{"everything", scopes("keys:manage", "read", "send"), `{"name":"n"}`, 403},
		{"admin", scopes("keys:manage"), `{"name":"n","scopes":["admin"]}`, 403},
		{"reading, by one that may only send", scopes("keys:manage", "send"), `{"name":"n","scopes":["read"]}`, 403},
		{"the area A, by an area of B", scopes("keys:manage", "emails:send"), `{"name":"n","scopes":["send"]}`, 403},
		{"a live key, by a test key", func(k *store.Key) { k.Mode = store.KeyTest }, `{"name":"n"}`, 403},
		{"a test key, by a test key", func(k *store.Key) { k.Mode = store.KeyTest }, `{"name":"n","mode":"test"}`, 201},
		{"all inboxes", onlyInboxes(one.ID), `{"name":"n"}`, 403},
		{"the same inbox", onlyInboxes(one.ID, two.ID), `{"name":"n","inbox_ids":["` + one.ID + `"]}`, 201},
		{"every address", ips("127.0.0.0/8"), `{"name":"n"}`, 403},
		{"the same block", ips("127.0.0.0/8"), `{"name":"n","allowed_ips":["127.0.0.0/8"]}`, 201},
		{"a block within", ips("127.0.0.0/8"), `{"name":"n","allowed_ips":["127.0.0.1/32","127.1.0.0/16"]}`, 201},
		{"a block around", ips("127.0.0.0/8"), `{"name":"n","allowed_ips":["127.0.0.0/7"]}`, 403},
		{"a block beside", ips("127.0.0.0/8"), `{"name":"n","allowed_ips":["127.0.0.1/32","10.0.0.0/8"]}`, 403},
		{"for ever", func(k *store.Key) { k.ExpiresAt = &expires }, `{"name":"n"}`, 403},
		{"for longer", func(k *store.Key) { k.ExpiresAt = &expires }, `{"name":"n","expires_at":"` + after(25*time.Hour) + `"}`, 403},
		{"for as long", func(k *store.Key) { k.ExpiresAt = &expires }, `{"name":"n","expires_at":"` + after(24*time.Hour) + `"}`, 201},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := s.do(t, http.MethodPost, "/v1/keys", tt.body, as(s.newKey(t, tt.by)))
			if tt.want == http.StatusForbidden {
				res.wantError(t, tt.want, "insufficient_scope")
			}
			res.want(t, tt.want)
		})
	}
	t.Run("an inbox that the key does not see", func(t *testing.T) {
		t.Parallel()
		s.do(t, http.MethodPost, "/v1/keys", `{"name":"n","inbox_ids":["`+two.ID+`"]}`, as(s.newKey(t, onlyInboxes(one.ID)))).
			wantError(t, http.StatusBadRequest, "invalid_request inbox_ids[0]")
	})
}

func ips(blocks ...string) func(*store.Key) {
	return func(k *store.Key) { k.AllowedIPs.V = blocks }
}

func TestRevokeKey(t *testing.T) {
	s := serve(t)
	for _, door := range doors {
		made := s.do(t, http.MethodPost, door, `{"name":"n"}`).want(t, http.StatusCreated)
		id, secret := made.str(t, "id"), made.str(t, "key")
		s.do(t, http.MethodGet, "/v1/inboxes", "", as(secret)).want(t, http.StatusOK)

		res := s.do(t, http.MethodDelete, door+"/"+id, "").want(t, http.StatusOK)
		res.wantAt(t, "object", `"api_key"`)
		res.wantAt(t, "id", `"`+id+`"`)
		res.wantAt(t, "deleted", `true`)
		res.wantAt(t, "revoked", `true`)

		s.do(t, http.MethodGet, "/v1/inboxes", "", as(secret)).wantError(t, http.StatusUnauthorized, "unauthorized")
		s.do(t, http.MethodDelete, door+"/"+id, "").wantError(t, http.StatusNotFound, "not_found")
		if slices.Contains(s.do(t, http.MethodGet, door, "").want(t, http.StatusOK).strs(t, "data", "id"), id) {
			t.Errorf("%s still lists it", door)
		}
	}
}

// A key revokes and limits only keys that it could have created, and raises no limits
// without the scope admin.
func TestKeyChangesNoKeyWithMoreRights(t *testing.T) {
	s := serve(t)
	one, two := s.newInbox(t), s.newInbox(t)
	expires := store.NewTime(begin.Add(24 * time.Hour))
	until := func(k *store.Key) { k.ExpiresAt = &expires }
	manager := scopes("keys:manage", "read")
	type edits []func(*store.Key)
	for _, tt := range []struct {
		name   string
		by, of edits
		want   int
	}{
		{"the first key", edits{scopes("keys:manage")}, edits{scopes("*")}, 403},
		{"a key with another scope", edits{scopes("keys:manage")}, edits{scopes("send")}, 403},
		{"an admin key", edits{manager}, edits{scopes("admin")}, 403},
		{"a key with fewer scopes", edits{manager}, edits{scopes("emails:read")}, 200},
		{"a key of all inboxes", edits{manager, onlyInboxes(one.ID)}, edits{scopes("read")}, 403},
		{"a key of another inbox", edits{manager, onlyInboxes(one.ID)}, edits{scopes("read"), onlyInboxes(one.ID, two.ID)}, 403},
		{"a key of its inbox", edits{manager, onlyInboxes(one.ID)}, edits{scopes("read"), onlyInboxes(one.ID)}, 200},
		{"a live key, by a test key", edits{scopes("*"), func(k *store.Key) { k.Mode = store.KeyTest }}, edits{scopes("read")}, 403},
		{"a key of every address", edits{manager, ips("127.0.0.0/8")}, edits{scopes("read")}, 403},
		{"a key for ever", edits{manager, until}, edits{scopes("read")}, 403},
		{"a key of every address and for ever, by an admin key", edits{scopes("admin"), ips("127.0.0.0/8"), until}, edits{scopes("*")}, 200},
		{"any key, by a key with limits", edits{scopes("*"), limitedKey(`{"sends_per_day":1}`, t)}, edits{scopes("read")}, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			by, secret := as(s.newKey(t, tt.by...)), s.newKey(t, tt.of...)
			path := "/" + s.keyID(t, secret)
			for _, door := range doors {
				res := s.do(t, http.MethodPatch, door+path, `{"limits":{"sends_per_day":0}}`, by).want(t, tt.want)
				if tt.want == http.StatusForbidden {
					res.wantError(t, tt.want, "insufficient_scope")
					s.do(t, http.MethodDelete, door+path, "", by).wantError(t, tt.want, "insufficient_scope")
				}
			}
			if res := s.do(t, http.MethodGet, "/v1/usage", "", as(secret)); res.status == http.StatusUnauthorized {
				t.Error("the key is revoked")
			}
			if tt.want == http.StatusOK {
				s.do(t, http.MethodDelete, doors[0]+path, "", by).want(t, tt.want)
			}
		})
	}

	// A key that runs out of use may end itself.
	limited := s.newKey(t, limitedKey(`{"sends_per_day":1}`, t), scopes("keys:manage"))
	s.do(t, http.MethodDelete, "/v1/keys/"+s.keyID(t, limited), "", as(limited)).want(t, http.StatusOK)

	// Limits are raised by admin keys without inbox_ids.
	sender := s.newKey(t, limitedKey(`{"sends_per_day":5}`, t), scopes("read"), onlyInboxes(one.ID))
	path := "/v1/keys/" + s.keyID(t, sender)
	for _, by := range []option{
		as(s.newKey(t, manager)), as(s.newKey(t, manager, onlyInboxes(one.ID))), as(s.newKey(t, scopes("*"), onlyInboxes(one.ID))),
	} {
		for _, limits := range []string{`null`, `{}`, `{"sends_per_day":6}`, `{"sends_per_hour":5}`} {
			s.do(t, http.MethodPatch, path, `{"limits":`+limits+`}`, by).wantError(t, http.StatusForbidden, "insufficient_scope limits")
		}
		s.do(t, http.MethodPatch, path, `{"limits":{"sends_per_day":5},"name":"n"}`, by).want(t, http.StatusOK)
	}
	s.do(t, http.MethodPatch, path, `{"limits":null}`, as(s.newKey(t, scopes("admin")))).want(t, http.StatusOK).wantAt(t, "limits", `null`)
}

// Each key has a budget of its own, so that a key with limits must not create keys.
func TestKeyWithLimitsCreatesNoKeys(t *testing.T) {
	s := serve(t)
	one := limitedKey(`{"sends_per_day":1}`, t)
	for name, secret := range map[string]string{
		"a key that manages keys": s.newKey(t, one, scopes("emails:send", "keys:manage")),
		"an admin key":            s.newKey(t, one),
	} {
		for _, door := range doors {
			for _, limits := range []string{`{"sends_per_day":1}`, `{"sends_per_day":0}`, `null`} {
				res := s.do(t, http.MethodPost, door, `{"name":"n","scopes":["emails:send"],"limits":`+limits+`}`, as(secret))
				res.wantError(t, http.StatusForbidden, "insufficient_scope")
				if m := res.str(t, "error.message"); !strings.Contains(m, "a key with limits cannot create keys") {
					t.Errorf("%s: the message is %q", name, m)
				}
			}
		}
	}
}

// family is a key without the scope admin, a key that it created, and one that this key
// created.
type family struct{ secrets, ids [3]string }

func (s *server) newFamily(t *testing.T) family {
	t.Helper()
	f := family{}
	f.secrets[0] = s.newKey(t, scopes("emails:send", "read", "keys:manage", "webhooks:manage"))
	f.ids[0] = s.keyID(t, f.secrets[0])
	for i := range 2 {
		f.secrets[i+1], f.ids[i+1] = s.createKey(t, as(f.secrets[i]))
	}
	return f
}

// createKey creates a key over the API.
func (s *server) createKey(t *testing.T, opts ...option) (secret, id string) {
	t.Helper()
	made := s.do(t, http.MethodPost, "/v1/keys", `{"name":"n","scopes":["emails:send","read","keys:manage","webhooks:manage"]}`, opts...).want(t, http.StatusCreated)
	return made.str(t, "key"), made.str(t, "id")
}

func TestRevokedKeyRevokesTheKeysItCreated(t *testing.T) {
	s := serve(t)
	works := func(secret string, want int) {
		t.Helper()
		s.do(t, http.MethodGet, "/v1/keys", "", as(secret)).want(t, want)
	}
	f, apart := s.newFamily(t), s.newFamily(t)
	hook := "/v1/webhooks/" + s.newWebhook(t, ``, as(f.secrets[2])).str(t, "id")
	s.do(t, http.MethodDelete, "/v1/keys/"+f.ids[1], "").want(t, http.StatusOK)
	works(f.secrets[0], http.StatusOK)
	works(f.secrets[1], http.StatusUnauthorized)
	works(f.secrets[2], http.StatusUnauthorized)
	s.do(t, http.MethodGet, hook, "").want(t, http.StatusOK).wantAt(t, "active", `false`)
	s.do(t, http.MethodDelete, "/v1/keys/"+f.ids[2], "").wantError(t, http.StatusNotFound, "not_found")

	// Its children of before are revoked already, and a new one goes with it.
	late, _ := s.createKey(t, as(f.secrets[0]))
	s.do(t, http.MethodDelete, "/v1/api-keys/"+f.ids[0], "").want(t, http.StatusOK)
	works(f.secrets[0], http.StatusUnauthorized)
	works(late, http.StatusUnauthorized)
	for _, secret := range apart.secrets {
		works(secret, http.StatusOK)
	}

	// A key that an admin key created stays, so that an admin key can be replaced.
	admin := s.newKey(t, scopes("admin"))
	next, _ := s.createKey(t, as(admin))
	s.do(t, http.MethodDelete, "/v1/keys/"+s.keyID(t, admin), "").want(t, http.StatusOK)
	works(next, http.StatusOK)

	// A key revoked while it creates a key leaves none behind.
	k := store.Key{AccountID: s.account, Name: "n", Hash: store.HashKey("late"), Mode: store.KeyLive, CreatedBy: &f.ids[0]}
	if _, err := s.store.CreateKey(t.Context(), k); !errors.Is(err, store.ErrState) {
		t.Errorf("a revoked key created a key: %v", err)
	}
}

// The lists of a key with inbox_ids have nothing of other inboxes.
func TestKeyOfSomeInboxes(t *testing.T) {
	s := serve(t)
	mine, other := s.newInbox(t), s.newInbox(t)
	seen := s.receive(t, mine, "Subject: Mine")
	s.receive(t, other, "Subject: Other")
	key := as(s.newKey(t, onlyInboxes(mine.ID)))

	for path, want := range map[string][]string{"/v1/inboxes": {mine.ID}, "/v1/messages": {seen.ID}} {
		if d := cmp.Diff(want, s.do(t, http.MethodGet, path, "", key).want(t, http.StatusOK).strs(t, "data", "id")); d != "" {
			t.Errorf("%s: -want +got:\n%s", path, d)
		}
	}
	const claim = "/v1/messages/claim"
	s.do(t, http.MethodPost, claim, `{}`, key).want(t, http.StatusOK).wantAt(t, "message.id", `"`+seen.ID+`"`)
	s.do(t, http.MethodPost, claim, `{}`, key).want(t, http.StatusOK).wantAt(t, "message", `null`)
	s.do(t, http.MethodPost, "/v1/inboxes", `{}`, key).wantError(t, http.StatusForbidden, "insufficient_scope")
	s.do(t, http.MethodDelete, "/v1/inboxes/"+mine.ID, "", key).want(t, http.StatusOK)
	s.do(t, http.MethodGet, "/v1/inboxes", "", key).want(t, http.StatusOK).wantAt(t, "data", `[]`)
	s.do(t, http.MethodGet, "/v1/messages", "", key).want(t, http.StatusOK).wantAt(t, "data", `[]`)
}

// TestKeyOfSomeInboxesManagesKeysOfTheseInboxes lists and revokes keys with keys
// that have inbox_ids.
func TestKeyOfSomeInboxesManagesKeysOfTheseInboxes(t *testing.T) {
	s := serve(t)
	one, two, three := s.newInbox(t), s.newInbox(t), s.newInbox(t)
	manager := as(s.newKey(t, scopes("keys:manage", "read"), onlyInboxes(one.ID, two.ID)))
	made := func(body string, opts ...option) string {
		return s.do(t, http.MethodPost, "/v1/keys", `{"name":"n","scopes":["read"]`+body+`}`, opts...).want(t, http.StatusCreated).str(t, "id")
	}
	own := made(`,"inbox_ids":["`+one.ID+`"]`, manager)
	both := made(`,"inbox_ids":["` + one.ID + `","` + two.ID + `"]`)
	mixed := made(`,"inbox_ids":["` + one.ID + `","` + three.ID + `"]`)
	for range 3 { // between the listed ones, so that a page needs several queries
		made(``)
		made(`,"inbox_ids":["` + three.ID + `"]`)
	}
	wide, last := made(``), made(`,"inbox_ids":["`+two.ID+`"]`)

	var got []string
	for path := "/v1/keys?limit=1"; path != ""; {
		page := s.do(t, http.MethodGet, path, "", manager).want(t, http.StatusOK)
		got = append(got, page.strs(t, "data", "id")...)
		if cursor, more := page.at(t, "cursor").(string); more {
			path = "/v1/keys?limit=1&cursor=" + cursor
		} else {
			path = ""
		}
	}
	if want := []string{last, both, own}; len(got) != 4 || !slices.Equal(got[:3], want) { // the manager itself is the oldest
		t.Errorf("listed %v, want %v and the key itself", got, want)
	}
	for _, door := range []string{"/v1/keys/", "/v1/api-keys/"} {
		for _, id := range []string{mixed, wide} {
			s.do(t, http.MethodDelete, door+id, "", manager).wantError(t, http.StatusForbidden, "insufficient_scope")
		}
	}
	for _, id := range []string{own, both, last} {
		s.do(t, http.MethodDelete, "/v1/keys/"+id, "", manager).want(t, http.StatusOK)
	}
	s.do(t, http.MethodDelete, "/v1/keys/"+own, "", manager).wantError(t, http.StatusNotFound, "not_found")
}
