package httpapi_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/httpapi"
)

func bodyFaults(t *testing.T, operation, body string) []string {
	t.Helper()
	var out []string
	for _, f := range httpapi.ExplainBody(operation, []byte(body)) {
		out = append(out, f.Param+": "+f.Message)
	}
	return out
}

// Every operation with a body and every query parameter has a schema that
// compiles.
func TestAllOperationsCanBeExplained(t *testing.T) {
	t.Parallel()
	bodies, params := 0, 0
	for op := range operations(t) {
		if op.body {
			bodies++
			faults := httpapi.ExplainBody(op.id, []byte(`{"no such field":1}`))
			if named := slices.ContainsFunc(faults, func(f httpapi.Fault) bool { return f.Param != "" }); !named && op.id != "callMcp" {
				t.Errorf("%s: %v", op.id, faults)
			}
		}
		for _, p := range op.params {
			params++
			if p.in == "path" {
				continue // a wrong one is not found
			}
			if faults := httpapi.ExplainParam(op.id, p.in, p.name, []string{strings.Repeat("\x01", 3000)}); faults[0].Message == "is not valid" {
				t.Errorf("%s %s: %v", op.id, p.name, faults)
			}
		}
	}
	if bodies < 25 || params < 100 {
		t.Errorf("%d bodies and %d parameters were tried", bodies, params)
	}
}

func TestFaultsAreInTheOrderOfTheBody(t *testing.T) {
	t.Parallel()
	body := `{"text":7,"to":[` + strings.Repeat(`"a@b.example",`, 10) + `1,{"name":2,"email":"b@b.example"}],"cc":3}`
	want := []string{
		"text: must be a string or null, not a number",
		"to[10]: must be a string or an object, not a number",
		"to[11].name: must be a string or null, not a number",
		"cc: must be a string, an object or an array, not a number",
		"subject: is required",
	}
	if d := cmp.Diff(want, bodyFaults(t, "sendMessage", body)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Handlers check and explain the rules about several fields.
func TestRulesAboutSeveralFieldsAreOmitted(t *testing.T) {
	t.Parallel()
	for operation, body := range map[string]string{
		"sendEmail":       `{"from":"a@b.example","to":"a@b.example","subject":"s","template":"","html":"h"}`,
		"simulateMessage": `{"from":"a@b.example","raw":""}`,
	} {
		if got := bodyFaults(t, operation, body); len(got) != 1 || !strings.Contains(got[0], "must not be empty") {
			t.Errorf("%s: %q", operation, got)
		}
	}
}

// A body with very many faults takes little memory. It runs alone, because it counts what the whole process allocates.
//
//nolint:paralleltest // as above
func TestBodiesFullOfFaults(t *testing.T) {
	const n = 2_000_000
	items, fields := strings.Repeat("7,", n), strings.Builder{}
	for i := range n / 10 {
		fmt.Fprintf(&fields, `"%050d":[7],`, i)
	}
	const many = ": the body has a fault, which is not looked for among more than 10000 values: send fewer items"
	const huge = ": a number in the body is out of range"
	for name, tt := range map[string]struct{ operation, body, want string }{
		"wrong items":    {"sendMessage", `{"subject":"s","text":"t","to":[` + items + `7]}`, many},
		"wrong fields":   {"createInbox", `{"metadata":{` + fields.String() + `"a":1}}`, many},
		"nested lists":   {"sendEmailBatch", `{"from":"a@b.example","subject":"s","text":"t","recipients":[` + strings.Repeat(`{"to":[7,7]},`, n/10) + `7]}`, many},
		"a long number":  {"createInbox", `{"retention_days":` + strings.Repeat("9", n) + `}`, huge},
		"a large number": {"createInbox", `{"retention_days":1e999999999}`, huge},
		"a small number": {"createInbox", `{"retention_days":-1e999999999}`, huge},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := bodyFaults(t, tt.operation, tt.body)
			runtime.ReadMemStats(&after)
			if len(got) == 0 || got[0] != tt.want || len(got) > httpapi.MaxFaults {
				t.Errorf("%.300q, want %q first", got, tt.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 80<<20 {
				t.Errorf("it took %d MB in all", used>>20)
			}
		})
	}
}
