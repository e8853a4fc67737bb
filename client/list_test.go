package client

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/gen"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	return string(b)
}

func pageJSON(more bool, cursor string, ids ...string) http.HandlerFunc {
	items := []string{}
	for _, id := range ids {
		items = append(items, strings.ReplaceAll(inboxJSON, "ibx_1", id))
	}
	text := `{"data":[` + strings.Join(items, ",") + `],"has_more":false,"cursor":null}`
	if more {
		text = strings.Replace(text, `false,"cursor":null`, `true,"cursor":"`+cursor+`"`, 1)
	}
	return respond(http.StatusOK, text)
}

func TestListsGoOverTheirPages(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		responses []http.HandlerFunc
		ids       []string
		asked     []string // queries
		want      error
	}{
		{"one page", []http.HandlerFunc{pageJSON(false, "", "ibx_1", "ibx_2")}, []string{"ibx_1", "ibx_2"}, []string{"limit=2"}, nil},
		{"nothing", []http.HandlerFunc{pageJSON(false, "")}, nil, []string{"limit=2"}, nil},
		{
			"three pages, one of them empty",
			[]http.HandlerFunc{pageJSON(true, "a", "ibx_1"), pageJSON(true, "b"), pageJSON(false, "", "ibx_2")},
			[]string{"ibx_1", "ibx_2"},
			[]string{"limit=2", "cursor=a&limit=2", "cursor=b&limit=2"},
			nil,
		},
		{
			"an error on the way",
			[]http.HandlerFunc{pageJSON(true, "a", "ibx_1"), refusal(403, ErrInsufficientScope)},
			[]string{"ibx_1"},
			[]string{"limit=2", "cursor=a&limit=2"},
			ErrInsufficientScope,
		},
		{
			"a server that sends it round in circles",
			[]http.HandlerFunc{pageJSON(true, "a", "ibx_1"), pageJSON(true, "a", "ibx_1")},
			[]string{"ibx_1", "ibx_1"},
			[]string{"limit=2", "cursor=a&limit=2"},
			errAny,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newTestServer(t, tt.responses...)
			c, _ := newTestClient(t, s.URL)
			var ids, asked []string
			var failed error
			for in, err := range c.Inboxes(t.Context(), gen.ListInboxesParams{Limit: gen.NewOptInt(2)}) {
				if failed = err; err == nil {
					ids = append(ids, in.ID)
				}
			}
			for _, r := range s.requests() {
				asked = append(asked, r.URL.RawQuery)
			}
			if d := cmp.Diff([][]string{tt.ids, tt.asked}, [][]string{ids, asked}); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if !isWanted(failed, tt.want) {
				t.Errorf("%v, want %v", failed, tt.want)
			}
		})
	}
}

// Each list of the contract has an iterator.
func TestEachListHasAnIterator(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, ops := range contractOf(t).Paths {
		for _, op := range ops {
			if op.has("Cursor") {
				want = append(want, strings.ToUpper(op.OperationID[:1])+op.OperationID[1:])
			}
		}
	}
	for _, name := range []string{"list.go", "stream.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(f.Sel.Name, "List") {
					got = append(got, f.Sel.Name)
				}
			}
			return true
		})
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
		t.Errorf("-lists +iterators:\n%s", d)
	}
}
