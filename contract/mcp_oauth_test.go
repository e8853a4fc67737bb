//go:build clients

package contract_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// TestOAuthOfTheOfficialClient connects the client of the official TypeScript SDK, which
// only knows the address of the MCP server, to the running program.
func TestOAuthOfTheOfficialClient(t *testing.T) {
	t.Parallel()
	node := nodeOfMCP(t)
	in := start(t, storetest.SQLite, newChecker(t), "POSTROOM_OAUTH=on", "POSTROOM_RATE_LIMITS=off")
	box := in.newInbox(t)
	in.newInbox(t) // which the person does not select
	s := in.openStore(t, time.Now)
	mine, err := s.KeyByHash(t.Context(), store.HashKey(firstKey))
	must(t, err)
	link, token := web.NewLink(time.Now())
	if _, err := s.CreateUser(t.Context(), mine.AccountID, "ann@example.com", store.RoleAdmin, link); err != nil {
		t.Fatal(err)
	}
	const session = "the session of a test"
	if _, err := s.UseLink(t.Context(), store.HashKey(token), "no password that is known", store.HashKey(session)); err != nil {
		t.Fatal(err)
	}
	out, err := runNode(t, node, "../oauth.mjs", in.api, session, box.ID)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := map[string]any{
		"before": "UnauthorizedError", "named": true, "back": "http://localhost:8976/callback", "state": "state of the client", "iss": in.api,
		"scope": "read send", "sends": true, "inboxes": []any{box.ID}, "refresh": "AUTHORIZED", "renewed": true, "again": "REDIRECT", "asked": true,
		"after": "UnauthorizedError",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
