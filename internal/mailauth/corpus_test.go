package mailauth

import (
	"bufio"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// spfCase is one case of a labelled collection: a zone, an SMTP client's
// parameters and the accepted results.
type spfCase struct {
	ID       string                       `json:"id"`
	Type     string                       `json:"type"`
	Helo     string                       `json:"helo"`
	Host     string                       `json:"host"`
	MailFrom string                       `json:"mailfrom"`
	Zone     map[string][]json.RawMessage `json:"zone"`
	Expected struct {
		Result      []Result `json:"result"`
		Explanation *string  `json:"explanation"`
	} `json:"expected"`
}

// TestSPFCorpus checks row A1 with the collection in POSTROOM_CORPUS.
func TestSPFCorpus(t *testing.T) {
	t.Parallel()
	corpus := os.Getenv("POSTROOM_CORPUS")
	if corpus == "" {
		t.Skip("POSTROOM_CORPUS names no collection; TestA1SPF has cases of our own")
	}
	f, err := os.Open(filepath.Join(corpus, "auth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	right, all := 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c spfCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Type != "spf" {
			continue
		}
		all++
		got := CheckHost(t.Context(), c.zone(t), netip.MustParseAddr(c.Host), c.Helo, c.MailFrom)
		want := c.Expected.Explanation
		if want != nil && *want == "DEFAULT" {
			want = new(string)
		}
		if !slices.Contains(c.Expected.Result, got.Result) || want != nil && got.Explanation != *want {
			t.Logf("%s: %+v, want %v %v", c.ID, got, c.Expected.Result, c.Expected.Explanation)
			continue
		}
		right++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d cases right", right, all)
	if all == 0 || right*100 < all*99 {
		t.Errorf("%d of %d cases right, want 0.99", right, all)
	}
}

// zone returns the zone of a case. Its SPF records count as TXT records, unless
// the name has TXT records of its own.
func (c spfCase) zone(t *testing.T) *zone {
	t.Helper()
	z := &zone{records: map[string][]record{}}
	for name, items := range c.Zone {
		var spf []string
		text := false
		for _, item := range items {
			var entry map[string]json.RawMessage
			if json.Unmarshal(item, &entry) != nil {
				z.add(name, "FAIL", "")
				continue
			}
			for kind, value := range entry {
				v := joined(t, kind, value)
				text = text || kind == "TXT"
				switch {
				case kind == "SPF":
					spf = append(spf, v)
				case v != "NONE":
					z.add(name, kind, v)
				}
			}
		}
		for _, v := range spf {
			if !text {
				z.add(name, "TXT", v)
			}
		}
	}
	return z
}

// joined returns a value as text: the strings of a TXT record joined, or the
// preference and host of an MX record.
func joined(t *testing.T, kind string, value json.RawMessage) string {
	t.Helper()
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	var list []any
	if err := json.Unmarshal(value, &list); err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, item := range list {
		switch v := item.(type) {
		case string:
			parts = append(parts, v)
		case float64:
			parts = append(parts, strconv.Itoa(int(v)))
		}
	}
	if kind == "MX" {
		return strings.Join(parts, " ")
	}
	return strings.Join(parts, "")
}
