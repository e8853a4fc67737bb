package contract_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

// secrets are the secrets that the program has issued, which must not appear
// elsewhere: keys, signing secrets and link tokens.
type secrets struct {
	mu     sync.Mutex
	known  map[[secretPart]byte]string // maps the middle of each to its description
	errors strings.Builder             // all error bodies
}

// secretPart is how many bytes identify a secret.
const secretPart = 16

var secretFields = regexp.MustCompile(`"(key|secret|previous_secret)":\s*"([^"]{24,})"|/v1/files/([A-Za-z0-9_-]{24,})`)

// note collects the secrets in a response, and the body of an error.
func (s *secrets) note(a response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.status >= http.StatusBadRequest {
		s.errors.Write(a.body)
		s.errors.WriteByte('\n')
		return
	}
	if !json.Valid(a.body) && a.status != http.StatusFound {
		return // a file
	}
	for _, m := range secretFields.FindAllStringSubmatch(string(a.body)+" "+a.header.Get("Location"), -1) {
		s.add(m[2]+m[3], m[0][:min(len(m[0]), 12)])
	}
}

func (s *secrets) add(secret, what string) {
	if s.known == nil {
		s.known = map[[secretPart]byte]string{}
	}
	from := (len(secret) - secretPart) / 2
	s.known[[secretPart]byte([]byte(secret[from:from+secretPart]))] = what
}

// find returns the secrets in text.
func (s *secrets) find(text string) (found []string) {
	for i := 0; i+secretPart <= len(text); i++ {
		if what, ok := s.known[[secretPart]byte([]byte(text[i:i+secretPart]))]; ok {
			found = append(found, fmt.Sprintf("%s in %q", what, text[max(0, i-100):min(len(text), i+100)]))
		}
	}
	if strings.Contains(text, "PRIVATE KEY") {
		found = append(found, "a private key")
	}
	return found
}

// installSecret is the secret from which an installation derives all others.
const installSecret = "the-secret-of-an-install-under-test-0123456789"

// wantKept (H2) searches for every secret of the run in the given places and in
// all error bodies.
func (s *secrets) wantKept(t *testing.T, places map[string]string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(firstKey, "the first key")
	s.add(installSecret, "INSTALL_SECRET")
	places["an error"] = s.errors.String()
	for place, text := range places {
		for _, found := range s.find(text) {
			t.Errorf("%s holds %s", place, found)
		}
		t.Logf("%d secrets looked for in %d bytes of %s", len(s.known), len(text), place)
	}
}

// metricsTellNoSecret (H2) checks the metrics after many operations.
func metricsTellNoSecret(t *testing.T, w *world) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.metrics, nil)
	must(t, err)
	res, err := w.base.RoundTrip(req)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(text), "postroom_http_requests_total") {
		t.Fatalf("%.300s: %v", text, err)
	}
	w.secrets.wantKept(t, map[string]string{"a metric": string(text)})
}

// dump returns the contents of the database, except raw mail.
func (in *install) dump(t *testing.T) string {
	t.Helper()
	ctx := context.Background() // the test's context has ended
	db := in.openDatabase(t)
	tables := `SELECT name FROM sqlite_master WHERE type = 'table'`
	if in.engine == storetest.PostgreSQL {
		tables = `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`
	}
	rows, err := db.QueryContext(ctx, tables)
	must(t, err)
	defer func() { _ = rows.Close() }() // rows.Err returns its error
	var names []string
	for rows.Next() {
		var name string
		must(t, rows.Scan(&name))
		names = append(names, name)
	}
	if err := rows.Err(); err != nil || len(names) == 0 {
		t.Fatalf("%d tables: %v", len(names), err)
	}
	var all strings.Builder
	for _, name := range names {
		dumpTable(ctx, t, db, name, &all)
	}
	if !strings.Contains(all.String(), "key_") {
		t.Error("the dump has no keys, so it is not whole")
	}
	return all.String()
}

func dumpTable(ctx context.Context, t *testing.T, db *sql.DB, name string, into *strings.Builder) {
	t.Helper()
	rows, err := db.QueryContext(ctx, `SELECT * FROM "`+name+`"`)
	must(t, err)
	defer func() { _ = rows.Close() }() // rows.Err returns its error
	columns, err := rows.Columns()
	must(t, err)
	values, targets := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		must(t, rows.Scan(targets...))
		for _, v := range values {
			fmt.Fprintf(into, "%s\n", v)
		}
	}
	must(t, rows.Err())
}
