package faults_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store/storetest"
)

// place is a part of the disk that is full or read-only for a while.
type place struct {
	name, path string
	// refuses says that some mail is refused meanwhile. Otherwise all of it is accepted.
	refuses bool
	server  bool // it is on the disk of PostgreSQL
}

// The places of each database. SQLite writes to its log, and moves pages to the database
// file later: without that it accepts mail until the log has no space.
var places = map[storetest.Engine][]place{
	storetest.SQLite: {
		{name: "database", path: "data/postroom.db"},
		{name: "write-ahead log", path: "data/postroom.db-wal", refuses: true},
		{name: "blobs", path: "data/blobs", refuses: true},
		{name: "temporary files", path: "data/tmp", refuses: true},
		{name: "log", path: "log"},
		{name: "data folder", path: "data", refuses: true},
	},
	storetest.PostgreSQL: {
		{name: "tables", path: "base", refuses: true, server: true},
		{name: "blobs", path: "data/blobs", refuses: true},
		{name: "temporary files", path: "data/tmp", refuses: true},
		{name: "log", path: "log"},
	},
}

// TestEachPlaceMayBeFullOrReadOnly makes one part of the disk full, or read-only, under
// the service. Small and large mail is accepted, or deferred with a text that says why;
// reading works; and the service recovers within seconds without a restart. What was
// accepted is stored whole and once, and `postroom verify` finds nothing. Rows S22 and C6
// of docs/testing.md.
func TestEachPlaceMayBeFullOrReadOnly(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			newPlacesTest(t, e).run(t)
		})
	}
}

// placesTest is an installation on disks that refuse changes.
type placesTest struct {
	*pair
	disk, server *powerMount // of the installation, and of PostgreSQL, or nil
	rows         []string    // of the table
}

func newPlacesTest(t *testing.T, e storetest.Engine) *placesTest {
	t.Helper()
	root := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	p := &placesTest{disk: newPowerMount(t, powerOptions{Path: root})}
	dir := filepath.Join(root, "data")
	database := filepath.Join(dir, "postroom.db")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if e == storetest.PostgreSQL {
		power := &powerTest{pg: startPostgres(t)}
		power.moveDatabase(t)
		p.server, database = power.disks[0], power.pg.URL(testpg.DefaultDatabase)
	}
	p.pair = newPair(installationAt(t, e, dir, database))
	return p
}

func (p *placesTest) run(t *testing.T) {
	for _, at := range places[p.in.engine] {
		p.refuse(at, syscall.ENOSPC)
		if !at.server { // PostgreSQL does not serve a read-only disk
			p.refuse(at, syscall.EROFS)
		}
	}
	p.in.crash() // nothing depends on a clean end
	p.in.hurry(t.Context())
	p.in.start()
	p.in.auditBoth(p.sent, p.received, p.to, false)
	p.compareRaw()
	out, err := p.in.command(t.Context(), program, "verify").CombinedOutput()
	if err != nil {
		t.Errorf("verify: %v", err)
	}
	t.Logf("verify: %s\n\n| place | | accepted | deferred |\n|---|---|---|---|\n%s", bytes.TrimSpace(out), strings.Join(p.rows, "\n"))
}

// refuse makes a place refuse changes for a while.
func (p *placesTest) refuse(at place, errno syscall.Errno) {
	p.t.Helper()
	p.want(small, 250, http.StatusCreated)
	p.want(large, 250, http.StatusCreated)
	disk := p.disk
	if at.server {
		disk = p.server
	}
	what := map[syscall.Errno]string{syscall.ENOSPC: "full", syscall.EROFS: "read-only"}[errno]
	disk.refuse(p.t, at.path, errno)
	codes := map[int]int{}
	// Tables of PostgreSQL have free space in their last pages.
	for i := 0; i < pick(2, 20) || i < 200 && at.server && codes[452] == 0; i++ {
		for _, size := range []int{small, large, larger} {
			p.deferred(codes, p.deliver(size), at, errno, 250, 452, 451)
			p.deferred(codes, p.send(size), at, errno, http.StatusCreated, http.StatusServiceUnavailable, http.StatusServiceUnavailable)
		}
	}
	p.read()
	disk.allow(p.t)
	p.recover()
	no := codes[451] + codes[452] + codes[503]
	if at.refuses != (no > 0) {
		p.t.Errorf("%s %s: %d messages and calls were refused: %v", at.name, what, no, codes)
	}
	p.rows = append(p.rows, fmt.Sprintf("| %s | %s | %d | %d |", at.name, what, codes[250]+codes[201], no))
}

// deferred counts a code, which must be that of success or of the error. PostgreSQL reports
// a full disk as an internal error if it cannot create the folder of its temporary files.
func (p *placesTest) deferred(codes map[int]int, code int, at place, errno syscall.Errno, success, full, unavailable int) {
	p.t.Helper()
	codes[code]++
	switch {
	case code == success, (errno == syscall.EROFS || at.server && code == 451) && code == unavailable:
	case errno == syscall.ENOSPC && code == full:
		if !strings.Contains(p.said, "No space left") && !strings.Contains(p.said, "storage of the server is full") {
			p.t.Errorf("%d without a reason: %s", code, p.said)
		}
	default:
		p.t.Errorf("%v: got %d: %s", errno, code, p.said)
	}
}

// read lists messages while the disk refuses changes.
func (p *placesTest) read() {
	p.t.Helper()
	c := p.in.current().caller()
	defer c.close()
	if err := c.call(p.t.Context(), http.StatusOK, nil, http.MethodGet, "/v1/messages?limit=10", nil); err != nil {
		p.t.Error(err)
	}
}

// compareRaw downloads what was received, and compares it with what was sent.
func (p *placesTest) compareRaw() {
	p.t.Helper()
	api := p.in.current().caller()
	defer api.close()
	for _, m := range p.in.messages("in") {
		e, ok := p.received.entries[m.Subject]
		if !ok {
			continue
		}
		raw, err := api.raw(p.t.Context(), m.ID)
		whole := false
		for _, size := range []int{small, large, larger} {
			whole = whole || bytes.Equal(raw, newMessage(m.Subject, size, e.to...).raw)
		}
		if err != nil || !whole {
			p.t.Errorf("%s: the raw message is not what was sent (%d bytes, sent %d): %v", m.Subject, len(raw), e.size, err)
		}
	}
}
