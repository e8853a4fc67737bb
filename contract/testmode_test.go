package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

// TestTestKeysNeverOpenAConnection runs all steps with a test key (row H21): messages
// get their states and events without any connection. A message of a live key
// shows that the relay would notice one.
func TestTestKeysNeverOpenAConnection(t *testing.T) {
	t.Parallel()
	s := &script{
		install: start(t, storetest.SQLite, newChecker(t), "POSTROOM_RATE_LIMITS=off"), t: t, key: firstKey,
		names: map[string]string{}, last: map[string]int{}, arrived: map[string]string{},
	}
	s.key = s.newKey(t, `"mode":"test"`).Key
	if !strings.HasPrefix(s.key, "sk_test_") {
		t.Fatalf("not a test key: %.8s", s.key)
	}
	for _, step := range scriptSteps {
		step.play(s)
	}
	s.settle()
	if n := s.relay.Conns(); n != 0 {
		t.Errorf("the relay has %d connections and %d messages", n, len(s.relay.Messages()))
	}
	s.wantTestEvents(t)

	body := `{"from":"` + emailFrom + `","to":"ana@example.org","subject":"s","text":"t"}`
	s.send(t, s.call("sendEmail").saying(body)).want(t, http.StatusCreated)
	s.relay.Wait(t, 1)
}

// wantTestEvents checks that test messages have had every state and that no
// recipient is still pending.
func (in *install) wantTestEvents(t *testing.T) {
	t.Helper()
	db := in.openDatabase(t)
	for _, typ := range []string{
		"email.queued", "email.scheduled", "email.sent", "email.delivered", "email.opened", "email.clicked", "email.bounced", "email.complained",
		"email.failed", "email.cancelled", "message.queued", "message.sent", "message.delivered", "message.bounced",
	} {
		var test, live int
		const q = `SELECT coalesce(sum(CASE WHEN test_mode THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN test_mode THEN 0 ELSE 1 END), 0)
			FROM events WHERE type = $1`
		if err := db.QueryRowContext(t.Context(), q, typ).Scan(&test, &live); err != nil || test == 0 || live != 0 {
			t.Errorf("%s: %d events of test keys and %d others: %v", typ, test, live, err)
		}
	}
	var used int
	if err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM daily_counts WHERE kind <> 'received') + (SELECT count(*) FROM send_counts)`).Scan(&used); err != nil || used != 0 {
		t.Errorf("%d counts for usage and stats: %v", used, err)
	}
}
