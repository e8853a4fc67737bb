package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDurationsWithOrWithoutUnit(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{
		"90": 90 * time.Second, "1.5": 1500 * time.Millisecond, "0": 0, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour,
		"0.5d": 12 * time.Hour, "999999999d": maxSpan,
	} {
		if got, err := parseSpan(s); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-1", "-5m", "soon", "10 m", "d", "NaN", "Inf", "1e300"} {
		if _, err := parseSpan(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

func TestQueriesSelectFromTheJSON(t *testing.T) {
	t.Parallel()
	const doc = `{"id":"ibx_1","size":12,"tags":["a","b<\u202e"],"none":null}`
	for text, want := range map[string]string{
		".id": "ibx_1\n", ".tags[0]": "a\n", ".tags": `["a","b<\u202e"]` + "\n", ".size + 1": "13\n", ".tags[]": "a\nb<\\u202e\n",
		".none": "null\n", "empty": "", "{id}": `{"id":"ibx_1"}` + "\n",
	} {
		q, err := newQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := q.write(output{w: &out}, []byte(doc)); err != nil || out.String() != want {
			t.Errorf("%s writes %q, %v; want %q", text, out.String(), err, want)
		}
	}
	if _, err := newQuery(".id |"); !errors.As(err, new(UsageError)) {
		t.Errorf("a broken expression: %v", err)
	}
	q, err := newQuery(".id.x")
	if err != nil {
		t.Fatal(err)
	}
	if err := q.write(output{w: new(bytes.Buffer)}, []byte(doc)); err == nil {
		t.Error("a field of a text was found")
	}
}

func TestDeletionIsConfirmed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		said        string
		args        []string
		interactive bool
		want        bool
	}{
		{"y\n", nil, true, true},
		{"YES\n", nil, true, true},
		{"n\n", nil, true, false},
		{"\n", nil, true, false},
		{"", nil, true, false},
		{"", []string{"--yes"}, true, true},
		{"", nil, false, true}, // a script
	} {
		s := newStub(t, "sk_key")
		var out bytes.Buffer
		p := Program{Stdin: strings.NewReader(tt.said), Stdout: &out, Stderr: &out, Interactive: tt.interactive}
		err := runIn(t, p, &out, append([]string{"inbox", "delete", "ibx_1", "--server", s.URL, "--key", "sk_key"}, tt.args...)...)
		if deleted := len(s.keys) > 0; deleted != tt.want || errors.Is(err, errNotConfirmed) == tt.want {
			t.Errorf("%+v: deleted %t, %v\n%s", tt, deleted, err, &out)
		}
	}
}
