package doctor_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/store/storetest"
)

var quietLog = log.New(io.Discard, "", 0)

func prefixes(t *testing.T, s string) []netip.Prefix {
	t.Helper()
	all, err := netguard.ParsePrefixes(s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The faults that the other tests find come from what they break: without faults, all
// checks pass.
func TestHealthyInstallationPassesAllChecks(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			w.accountDomain(t, "shop.example")
			r := w.run(t)
			for _, one := range r.Results {
				if one.Status == doctor.OK {
					continue
				}
				if one.Check == "disk" && one.Status == doctor.Warn { // of the machine that tests
					continue
				}
				t.Errorf("%s %s is %s: %s", one.Check, one.Subject, one.Status, one.Saw)
			}
			if r.Count(doctor.OK) < 20 {
				t.Errorf("fewer than 20 checks passed:\n%s", text(t, r))
			}
		})
	}
}

// hanging is a resolver that does not reply until the context ends.
type hanging struct{ dns.Resolver }

func (hanging) LookupTXT(ctx context.Context, _ string) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) LookupMX(ctx context.Context, _ string) ([]*net.MX, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestChecksEndInTime uses a resolver and a disk that hang.
func TestChecksEndInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite)
	w.cfg.Resolver = hanging{w.zones.Resolver()}
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	w.cfg.ClockSynced = func() (bool, bool) { <-never; return true, true } // heeds no context
	w.cfg.Timeout = time.Second
	start := time.Now()
	r := w.run(t)
	if took := time.Since(start); took > w.cfg.Timeout+2*time.Second {
		t.Errorf("it took %s", took)
	}
	wantResult(t, r, "clock", doctor.Fail, "no result within 1s", "")
	wantResult(t, r, "mx", doctor.Warn, "DNS lookup failed", "POSTROOM_RESOLVER")
	wantResult(t, r, "host", doctor.Warn, "DNS lookup failed", "POSTROOM_RESOLVER")
	wantResult(t, r, "database", doctor.OK, "", "")
}

func TestReportIsJSONForPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite)
	delete(w.zones, "_dmarc."+mailDomain+".")
	var b strings.Builder
	if err := w.run(t).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Status    string    `json:"status"`
		CheckedAt time.Time `json:"checked_at"`
		Results   []struct {
			Check, Subject, Status, Saw string
			Do                          []string
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v in\n%s", err, &b)
	}
	if got.Status == "ok" || got.CheckedAt.IsZero() || strings.Contains(b.String(), `"do": null`) {
		t.Errorf("the report is\n%s", &b)
	}
	for _, r := range got.Results {
		if r.Check == "dmarc" && r.Status == "warn" && r.Subject == mailDomain && len(r.Do) == 1 &&
			r.Do[0] == `publish: _dmarc.agents.example. 3600 IN TXT "v=DMARC1; p=quarantine"` {
			return
		}
	}
	t.Errorf("the missing record is not in\n%s", &b)
}
