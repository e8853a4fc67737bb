package main

import (
	"fmt"
	"strings"
	"testing"
)

// events returns what go test -json prints for tests that end so. A failed test has a
// subtest that says why.
func events(ends map[string]string) string {
	var b strings.Builder
	pkg := "pass"
	for test, end := range ends {
		fmt.Fprintf(&b, "{\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"%[1]s/part\",\"Output\":\"said by %[1]s\\n\"}\n", test)
		fmt.Fprintf(&b, "{\"Action\":\"%[2]s\",\"Package\":\"p\",\"Test\":\"%[1]s/part\",\"Elapsed\":2.5}\n{\"Action\":\"%[2]s\",\"Package\":\"p\",\"Test\":\"%[1]s\"}\n", test, end)
		if end == "fail" {
			pkg = end
		}
	}
	fmt.Fprintf(&b, "{\"Action\":\"%s\",\"Package\":\"p\",\"Elapsed\":7}\n", pkg)
	return b.String()
}

func TestRun(t *testing.T) {
	t.Parallel()
	const panics = `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: lost\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`
	const broken = `{"ImportPath":"p","Action":"build-output","Output":"undefined: missing\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p"}
`
	for _, tt := range []struct {
		name   string
		ci     bool
		output string
		codes  []int // of each run of go test
		code   int
		shows  string
		not    string
	}{
		{"all pass", true, events(map[string]string{"TestA": "pass"}), []int{0}, 0, "     2.5  p TestA", "said by"},
		{"one fails", false, events(map[string]string{"TestA": "fail", "TestB": "pass"}), []int{1}, 1, "said by TestA", "said by TestB"},
		{"one fails twice", true, events(map[string]string{"TestA": "fail"}), []int{1, 1}, 1, "=== once more: p TestA", "FLAKY"},
		{"one passes alone", true, events(map[string]string{"TestA": "fail"}), []int{1, 0}, 0, "=== FLAKY: p TestA failed", "said by TestB"},
		{"four fail", true, events(map[string]string{"TestA": "fail", "TestB": "fail", "TestC": "fail", "TestD": "fail"}), []int{1}, 1, "said by TestD", "once more"},
		{"one panics", true, panics, []int{2}, 2, "panic: lost", "once more"},
		{"a package fails without a test", true, `{"Action":"fail","Package":"p"}` + "\n", []int{1}, 1, "slowest", "once more"},
		{"a package does not compile", true, broken, []int{1}, 1, "undefined: missing", "once more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			runs := 0
			code, err := run(func(take func([]byte), _ ...string) (int, error) {
				if runs++; runs == 1 {
					for line := range strings.Lines(tt.output) {
						take([]byte(line))
					}
				}
				return tt.codes[runs-1], nil
			}, nil, []string{"./..."}, tt.ci, &out)
			if err != nil || code != tt.code || runs != len(tt.codes) {
				t.Errorf("%d runs, exit code %d: %v; want %d runs, code %d", runs, code, err, len(tt.codes), tt.code)
			}
			if !strings.Contains(out.String(), tt.shows) || strings.Contains(out.String(), tt.not) {
				t.Errorf("want %q and not %q:\n%s", tt.shows, tt.not, &out)
			}
		})
	}
}
