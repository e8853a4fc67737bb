package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestCreateInbox(t *testing.T) {
	s := serve(t)
	tests := []struct {
		name, body string
		path, want string // part of the response
	}{
		{"without a body a random name is made", ``, "send_policy", `"open"`},
		{"an empty object is the same", `{}`, "retention_days", `7`},
		{"the address is name and domain", `{"name":"agent"}`, "address", `"agent@mail.example"`},
		{"the name is the local part", `{"name":"agent.two"}`, "name", `"agent.two"`},
		{"a name is folded to lower case", `{"name":"Agent-THREE"}`, "address", `"agent-three@mail.example"`},
		{"a domain is folded to lower case", `{"domain":"Mail.EXAMPLE"}`, "domain", `"mail.example"`},
		{"a display name is kept", `{"display_name":"Ann Ågren"}`, "display_name", `"Ann Ågren"`},
		{"a policy is kept", `{"send_policy":"approval"}`, "send_policy", `"approval"`},
		{"retention is kept", `{"retention_days":30}`, "retention_days", `30`},
		{"metadata keeps its types", `{"metadata":{"a":"x","b":1.5,"c":true,"d":null}}`, "metadata", `{"a":"x","b":1.5,"c":true,"d":null}`},
		{"no metadata is an empty object", `{}`, "metadata", `{}`},
		{"expiry is kept to the millisecond", `{"expires_at":"2027-01-01T01:02:03.4567+01:00"}`, "expires_at", `"2027-01-01T00:02:03.456Z"`},
		{"a whole second gets its decimals", `{"expires_at":"2027-01-01T00:00:00Z"}`, "expires_at", `"2027-01-01T00:00:00.000Z"`},
		{"nothing has arrived yet", `{}`, "last_message_at", `null`},
		{"it is created now", `{}`, "created_at", `"2026-09-23T10:00:00.000Z"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := s.do(t, http.MethodPost, "/v1/inboxes", tt.body).want(t, http.StatusCreated)
			res.wantAt(t, tt.path, tt.want)
			res.wantSame(t, s.do(t, http.MethodGet, "/v1/inboxes/"+res.str(t, "id"), "").want(t, http.StatusOK))
		})
	}
}

func TestCreateInboxRefuses(t *testing.T) {
	s := serve(t)
	taken := s.newInbox(t)
	tests := []struct {
		name, body string
		status     int
		want       string // code and param
	}{
		{"the Kelvin sign, which folds to k", "{\"name\":\"\u212a\"}", 400, "invalid_request name"},
		{"an address in use", `{"name":"` + taken.Name + `"}`, 409, "address_taken name"},
		{"an address in use in capitals", `{"name":"` + strings.ToUpper(taken.Name) + `"}`, 409, "address_taken name"},
		{"a foreign domain", `{"domain":"gmail.com"}`, 403, "domain_not_verified domain"},
		{"a domain below ours", `{"domain":"x.mail.example"}`, 403, "domain_not_verified domain"},
		{"an expiry in the past", `{"expires_at":"2020-01-01T00:00:00Z"}`, 400, "invalid_request expires_at"},
		{"an expiry now", `{"expires_at":"2026-09-23T10:00:00Z"}`, 400, "invalid_request expires_at"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s.do(t, http.MethodPost, "/v1/inboxes", tt.body, brokenIf(tt.status)).wantError(t, tt.status, tt.want)
		})
	}
}

func TestLongestRetention(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ configured, most int }{"30 days unless configured": {0, 30}, "as configured": {400, 400}} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(c *handlers.Config) { c.MaxRetentionDays = tt.configured })
			days := func(n int) string { return fmt.Sprintf(`{"retention_days":%d}`, n) }
			in := s.do(t, http.MethodPost, "/v1/inboxes", days(tt.most)).want(t, http.StatusCreated).str(t, "id")
			s.do(t, http.MethodPatch, "/v1/inboxes/"+in, days(tt.most)).want(t, http.StatusOK)
			want := fmt.Sprintf("retention_days must be at most %d: POSTROOM_MAX_RETENTION_DAYS sets", tt.most)
			for _, res := range []response{
				s.do(t, http.MethodPost, "/v1/inboxes", days(tt.most+1)), s.do(t, http.MethodPatch, "/v1/inboxes/"+in, days(tt.most+1)),
			} {
				res.wantError(t, http.StatusBadRequest, "invalid_request retention_days")
				if got := res.str(t, "error.message"); !strings.HasPrefix(got, want) {
					t.Errorf("got %s", got)
				}
			}
		})
	}
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	return "{" + strings.Join(keys, ",") + "}"
}

// TestReservedNames asks for reserved names as names and as aliases. Those that
// certificate authorities write to are reserved on every domain, those of the service on
// the shared domain. The first account's admin keys may have the others.
func TestReservedNames(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, s *server, zone *dns) {
		admin, agent := as(s.key), as(s.newKey(t, scopes("send", "read")))
		d := s.newDomain(t, "ann.example")
		zone.publish(d, "OWNERSHIP", "DKIM")
		s.verify(t, d.ID)
		second := storetest.Account(t, s.store).Seq
		others := as(s.newKey(t, func(k *store.Key) { k.AccountID = second }))
		holder := s.do(t, http.MethodPost, "/v1/inboxes", `{}`, others).want(t, http.StatusCreated).str(t, "id")
		ask := func(name, domain string, by option) (named, aliased response) {
			in := s.do(t, http.MethodPost, "/v1/inboxes", `{"domain":"`+domain+`"}`, by).want(t, http.StatusCreated).str(t, "id")
			aliased = s.do(t, http.MethodPatch, "/v1/inboxes/"+in, `{"aliases":["`+name+`"]}`, by)
			if aliased.status == http.StatusOK { // free it for the name
				s.do(t, http.MethodPatch, "/v1/inboxes/"+in, `{"aliases":[]}`, by).want(t, http.StatusOK)
			}
			return s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"`+name+`","domain":"`+domain+`"}`, by), aliased
		}
		refused := func(name, domain string, by option) {
			t.Helper()
			named, aliased := ask(name, domain, by)
			named.wantError(t, http.StatusBadRequest, "invalid_request name")
			aliased.wantError(t, http.StatusBadRequest, "invalid_request aliases[0]")
		}
		allowed := func(name, domain string, by option) {
			t.Helper()
			named, aliased := ask(name, domain, by)
			aliased.want(t, http.StatusOK)
			named.want(t, http.StatusCreated)
		}
		for _, name := range []string{
			"postmaster", "abuse", "mailer-daemon", "hostmaster", "noreply", "no-reply", "admin", "root", "security", "webmaster", "bounce",
			"administrator", "ssladmin", "ssladministrator", "sslwebmaster", "Administrator",
		} {
			for _, by := range []option{admin, agent, others} {
				refused(name, mailDomain, by)
			}
			refused(name, "ann.example", admin)
		}
		for _, name := range []string{"mailerdaemon", "bounces", "dmarc", "tlsrpt", "tls-reports", "noc", "dns"} {
			for _, by := range []option{admin, agent, others} {
				refused(name, mailDomain, by)
			}
			allowed(name, "ann.example", agent)
		}
		for _, name := range []string{"is", "it", "mis", "info", "support"} {
			refused(name, mailDomain, agent)
			refused(name, mailDomain, others)
			allowed(name, mailDomain, admin)
			allowed(name, "ann.example", agent)
		}

		s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"it"}`, agent).wantAt(t, "error.message",
			`"name \"it\" is reserved on `+mailDomain+`: only a key of the first account with the scope admin can use it"`)

		// An inbox that has one of them keeps it when it changes.
		if _, err := s.store.UpdateInbox(t.Context(), second, holder, func(in *store.Inbox) error {
			in.Aliases.V = []string{"administrator"}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		s.do(t, http.MethodPatch, "/v1/inboxes/"+holder, `{"display_name":"B"}`, others).want(t, http.StatusOK)
		s.do(t, http.MethodPatch, "/v1/inboxes/"+holder, `{"aliases":["administrator","orders"]}`, others).want(t, http.StatusOK)
		s.do(t, http.MethodPatch, "/v1/inboxes/"+holder, `{"aliases":[]}`, others).want(t, http.StatusOK)
		s.do(t, http.MethodPatch, "/v1/inboxes/"+holder, `{"aliases":["administrator"]}`, others).wantError(t, http.StatusBadRequest, "invalid_request aliases[0]")
	})
}

// Equal random names would make a create call fail, and predictable ones invite
// spam.
func TestRandomNamesDiffer(t *testing.T) {
	s := serve(t)
	seen := map[string]bool{}
	for range 50 {
		name := s.do(t, http.MethodPost, "/v1/inboxes", "").want(t, http.StatusCreated).str(t, "name")
		if seen[name] || len(name) < 12 {
			t.Fatalf("name %q came again, or is short", name)
		}
		seen[name] = true
	}
}

func TestListInboxes(t *testing.T) {
	s := serve(t)
	var want []string
	for range 5 {
		want = append([]string{s.newInbox(t).ID}, want...)
	}
	foreign := s.otherInbox(t)

	res := s.do(t, http.MethodGet, "/v1/inboxes", "").want(t, http.StatusOK)
	if d := cmp.Diff(want, res.strs(t, "data", "id")); d != "" {
		t.Errorf("newest first: -want +got:\n%s", d)
	}
	res.wantAt(t, "has_more", `false`)
	res.wantAt(t, "cursor", `null`)

	got := s.pages(t, "/v1/inboxes?limit=2")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("in pages: -want +got:\n%s", d)
	}
	s.do(t, http.MethodGet, "/v1/inboxes?limit=5", "").want(t, http.StatusOK).wantAt(t, "has_more", `false`)

	in := s.newInbox(t, func(in *store.Inbox) { in.Aliases.V = []string{"helpdesk"} })
	all, narrow := append([]string{in.ID}, want...), as(s.newKey(t, onlyInboxes(want[0])))
	for query, want := range map[string][]string{
		"address=" + in.Address: {in.ID}, "address=" + strings.ToUpper(in.Address): {in.ID}, "address=helpdesk@" + mailDomain: {in.ID},
		"address=" + foreign.Address: nil, "address=%25@" + mailDomain: nil,
		"id_prefix=" + in.ID: {in.ID}, "id_prefix=ibx_": all, "id_prefix=ibx%25": nil,
	} {
		if d := cmp.Diff(want, s.pages(t, "/v1/inboxes?limit=10&"+query)); d != "" {
			t.Errorf("%s: -want +got:\n%s", query, d)
		}
	}
	if got := s.pages(t, "/v1/inboxes?id_prefix="+in.ID, narrow); len(got) != 0 {
		t.Errorf("a key of another inbox finds %v", got)
	}
}

// pages follows a list to its end and returns all ids.
func (s *server) pages(t *testing.T, path string, opts ...option) []string {
	t.Helper()
	var ids []string
	next := path
	for range 1000 {
		res := s.do(t, http.MethodGet, next, "", opts...).want(t, http.StatusOK)
		ids = append(ids, res.strs(t, "data", "id")...)
		cursor, more := res.at(t, "cursor").(string)
		if res.at(t, "has_more") != more {
			t.Fatalf("has_more and cursor differ: %s", res.body)
		}
		if !more {
			return ids
		}
		next = path + "&cursor=" + cursor
	}
	t.Fatal("the list has no end")
	return nil
}
