package httpapi

import (
	"runtime"
	"strings"
	"testing"
)

func TestReadBody(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`"n`, 1) // names that differ from all others
	var many strings.Builder
	for _, c := range "abcdefghijklmnopqrst" {
		many.WriteString(long + string(c) + `":1,`)
	}
	for doc, want := range map[string]string{
		`{}`:                            "",
		`"text"`:                        "",
		`{"a":[1,{"b":"c"}],"d":"ä"}`:   "",
		`{"a":1,"a":2}`:                 "a is given twice",
		`{"a":{"b":[0,{"c":1,"c":2}]}}`: "a.b[1].c is given twice",
		`[[{"a":1,"a":1}]]`:             "[0][0].a is given twice",
		`{` + many.String() + `"na":2}`: "na is given twice",
		`{"a":"\u0000"}`:                "a " + uncleanText,
		`{"a":1,"b":["x","\ud800"]}`:    "b[1] " + uncleanText,
		`{"a":"\\ud800","b":"\\\ud83d\ude00\ude00"}`: "b " + uncleanText,
		`{"a":{"\u0000":1}}`:                         "a " + uncleanText,
		`{"a":"\ud83d\\\ude00"}`:                     "a " + uncleanText,
		`{"a":"\ud83d\ude00"}`:                       "",
		"\"\xff\"":                                   " " + uncleanText,
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth): "",
	} {
		got := ""
		if fault := readBody([]byte(doc)).fault; fault != nil {
			got = fault.Param + " " + fault.Message
		}
		if got != want {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
}

// A body that nests deep is refused, and what it takes does not depend on the depth.
func TestDeepBodies(t *testing.T) {
	const depth, name = 9000, "a name of twenty chars"
	body := []byte(strings.Repeat(`{"`+name+`":`, depth) + `"\u0000"` + strings.Repeat("}", depth))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fault := readBody(body).fault
	runtime.ReadMemStats(&after)
	if fault == nil || fault.Message != "is nested too deep: at most 100 levels are possible" || strings.Count(fault.Param, name) != maxDepth {
		t.Errorf("%v", fault)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("a body of %d bytes took %d bytes", len(body), took)
	}
}
