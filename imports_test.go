package postroom_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/postroom/postroom"

// layer says which of our own packages a package may import. Patterns are as
// in path.Match, below the module.
type layer struct {
	pkg     string
	imports []string // in the package
	tests   []string // and in its tests, besides forTests
}

var (
	nothing    []string
	everything = []string{
		"store", "gen", "handlers", "smtp", "smtp/inbound", "smtp/report", "smtp/outbound", "smtp/queue", "client", "internal/mail", "internal/mail/*", "internal/webhook",
		"internal/dns", "internal/dnsrec", "internal/domains", "internal/mailauth", "internal/netguard", "internal/apikey", "internal/mcp", "internal/oauth",
		"internal/web", "internal/approval", "internal/passhash", "internal/maintenance", "internal/nearname", "internal/feedback", "internal/s3blob", "internal/search", "internal/stream", "internal/template",
		"internal/doctor", "internal/docs", "internal/httpapi", "internal/backup", "internal/disk", "internal/acmecert", "internal/cli", "internal/httpserver", "internal/mailhtml", "internal/cpubudget", "internal/work", "internal/journal", "internal/linkscan", "internal/spool", "internal/dropin", "internal/dropin/vendorapi",
	}
	// forTests is for the tests of every package, and for no program.
	forTests = []string{"store/storetest", "smtp/smtptest", "internal/testpg", "internal/testprogram", "internal/contractcheck", "internal/s3test", "internal/acmetest", "internal/cputime", "internal/cpubudget", "internal/lineartest", "internal/skiptest", "internal/waittest", "internal/mailhtml/hostilemail", "internal/mail/mailtest"}
)

// layers is the import table of the house. handlers, smtp and webhook never
// see each other: they meet in the store, and cmd/postroom joins them. A
// package without a row here fails the test; add one, and think about what it
// should be allowed to see.
var layers = []layer{
	{pkg: "store", imports: []string{"internal/ids", "internal/mail", "internal/mail/plaintext", "internal/mail/safety", "store/internal/checksum", "store/internal/engine", "store/internal/index", "store/internal/quota", "store/internal/seal", "internal/crashpoint", "internal/disk", "internal/work"}},
	{pkg: "store/internal/engine", imports: []string{"internal/disk", "internal/work", "store/migrations"}},
	{pkg: "store/internal/index", imports: []string{"store/internal/engine"}},
	{pkg: "store/internal/checksum", imports: nothing},
	{pkg: "store/internal/quota", imports: nothing},
	{pkg: "store/internal/recent", imports: nothing},
	{pkg: "store/internal/seal", imports: nothing},
	{pkg: "internal/disk", imports: nothing},
	{pkg: "store/migrations", imports: nothing},
	{pkg: "internal/crashpoint", imports: nothing},
	{pkg: "internal/testclock", imports: nothing},
	{pkg: "gen", imports: nothing},
	{pkg: "internal/timeform", imports: nothing},
	{pkg: "internal/mail", imports: []string{"internal/cpubudget", "internal/mail/plaintext"}, tests: []string{"internal/mail/*"}},
	{pkg: "internal/mail/plaintext", imports: nothing},
	{pkg: "internal/mail/mime", imports: []string{"internal/mail", "internal/mail/plaintext"}},
	{pkg: "internal/mail/css", imports: nothing},
	{pkg: "internal/mail/safety", imports: []string{"internal/mail", "internal/mail/htmltext", "internal/mail/mime", "internal/mail/plaintext"}, tests: []string{"internal/mail/extract"}},
	{pkg: "internal/mail/htmltext", imports: []string{"internal/cpubudget", "internal/mail", "internal/mail/css", "internal/mail/plaintext"}},
	{pkg: "internal/mail/reply", imports: []string{"internal/cpubudget", "internal/mail/htmltext", "internal/mail/plaintext"}},
	{pkg: "internal/mail/extract", imports: []string{"internal/cpubudget", "internal/mail", "internal/mail/calendar", "internal/mail/htmltext", "internal/mail/mime", "internal/mail/plaintext", "internal/mail/reply", "internal/mail/safety"}, tests: []string{"tools/labelled"}},
	{pkg: "internal/mail/calendar", imports: []string{"internal/mail", "internal/mail/plaintext"}, tests: []string{"internal/mail/mime"}},
	{pkg: "internal/mail/bounce", imports: []string{"internal/mail", "internal/mail/htmltext", "internal/mail/mime", "internal/mail/plaintext"}},
	{pkg: "internal/mail/compose", imports: []string{"internal/mail", "internal/mail/mime", "internal/mail/plaintext"}, tests: []string{"internal/mail/reply"}},
	{pkg: "internal/feedback", imports: nothing},
	{pkg: "internal/dns", imports: nothing},
	{pkg: "internal/work", imports: nothing},
	{pkg: "internal/dnsrec", imports: []string{"internal/dns"}},
	{pkg: "internal/nearname", imports: nothing},
	{pkg: "internal/ids", imports: nothing},
	{pkg: "docs", imports: nothing},
	{pkg: "internal/docs", imports: []string{"docs"}, tests: []string{"gen"}},
	{pkg: "internal/netguard", imports: []string{"internal/dns"}},
	{pkg: "internal/linkscan", imports: []string{"gen", "internal/netguard"}},
	{pkg: "internal/mtasts", imports: nothing},
	{pkg: "internal/template", imports: nothing},
	{pkg: "internal/mailhtml", imports: []string{"internal/mail/css", "internal/mail/plaintext"}},
	{pkg: "internal/mailhtml/hostilemail", imports: nothing},
	{pkg: "internal/domains", imports: []string{"store", "internal/dns", "internal/dnsrec", "internal/work"}, tests: []string{"smtp/queue"}},
	{
		pkg:     "internal/doctor",
		imports: []string{"store", "smtp/outbound", "smtp/queue", "internal/disk", "internal/dns", "internal/dnsrec", "internal/domains", "internal/mailauth", "internal/netguard"},
	},
	{pkg: "internal/s3blob", imports: []string{"store"}},
	{pkg: "internal/stream", imports: []string{"store", "internal/work"}},
	{pkg: "internal/apikey", imports: nothing},
	{pkg: "internal/mailauth", imports: []string{"internal/dns", "internal/mail", "internal/mail/mime"}},
	{pkg: "internal/search", imports: []string{"store", "internal/work", "internal/mail", "internal/mail/*"}},
	{pkg: "internal/httpapi", imports: []string{"internal/ids", "gen", "store", "internal/feedback", "internal/mail/plaintext", "internal/nearname", "internal/netguard", "internal/timeform"}, tests: []string{"internal/httpserver"}},
	{
		pkg:     "handlers",
		imports: []string{"gen", "store", "internal/httpapi", "internal/ids", "internal/cpubudget", "internal/mail", "internal/mail/*", "internal/mailhtml", "internal/feedback", "internal/search", "internal/timeform", "internal/stream", "internal/template", "internal/dnsrec", "internal/domains", "internal/netguard", "internal/apikey"},
		tests:   []string{"internal/dropin", "internal/dropin/vendorapi", "smtp/inbound", "smtp/outbound", "smtp/queue", "internal/approval", "internal/httpserver", "internal/spool", "internal/maintenance", "internal/mcp", "internal/s3blob", "smtp", "internal/work"},
	},
	{pkg: "smtp", imports: []string{"store"}},
	{pkg: "internal/spool", imports: nothing},
	{pkg: "smtp/report", imports: []string{"smtp", "store", "internal/feedback", "internal/mail", "internal/mail/bounce"}},
	{
		pkg: "smtp/inbound", imports: []string{"smtp", "smtp/report", "store", "internal/spool", "internal/cpubudget", "internal/mail", "internal/mail/*", "internal/feedback", "internal/mailauth", "internal/netguard"},
		tests: []string{"internal/dns", "smtp/outbound", "smtp/queue"},
	},
	{pkg: "smtp/outbound", imports: []string{"smtp", "store", "internal/crashpoint", "internal/dns", "internal/mail/plaintext", "internal/mtasts", "internal/netguard"}},
	{
		pkg: "smtp/queue", imports: []string{"smtp", "smtp/outbound", "store", "internal/crashpoint", "internal/dns", "internal/dnsrec", "internal/feedback", "internal/mail", "internal/mail/*", "internal/mtasts", "internal/netguard", "internal/work"},
		tests: []string{"internal/mailauth", "smtp/inbound"},
	},
	{pkg: "internal/webhook", imports: []string{"store", "internal/crashpoint", "internal/netguard", "internal/work"}},
	{pkg: "internal/journal", imports: []string{"store", "internal/work"}},
	{pkg: "internal/maintenance", imports: []string{"store", "internal/dnsrec", "internal/work"}},
	{pkg: "internal/acmecert", imports: []string{"store", "internal/work"}},
	{pkg: "internal/backup", imports: []string{"store", "internal/disk", "internal/work"}, tests: []string{"internal/s3blob"}},
	{pkg: "internal/approval", imports: []string{"gen", "store", "internal/domains", "internal/httpapi", "internal/mail", "internal/mail/compose", "internal/mail/plaintext", "internal/work"}},
	{pkg: "internal/dropin", imports: []string{"internal/dropin/*", "internal/httpapi"}},
	{pkg: "internal/dropin/*", imports: []string{"gen", "internal/dropin/vendorapi", "internal/httpapi", "internal/timeform"}},
	{pkg: "internal/mcp", imports: []string{"gen", "internal/httpapi", "internal/ids", "internal/mail/plaintext"}, tests: []string{"store"}},
	{
		pkg: "internal/web", imports: []string{"gen", "store", "internal/approval", "internal/dnsrec", "internal/doctor", "internal/httpapi", "internal/mailhtml", "internal/netguard", "internal/oauth", "internal/passhash", "internal/template", "internal/web/chart"},
		tests: []string{"handlers", "internal/mail", "internal/mailauth", "smtp", "smtp/inbound", "smtp/outbound", "smtp/queue", "internal/domains", "internal/feedback", "internal/netguard", "internal/stream", "internal/webhook"},
	},
	{
		pkg: "internal/oauth", imports: []string{"store", "internal/apikey", "internal/httpapi", "internal/mail/plaintext", "internal/netguard"},
		tests: []string{"handlers", "internal/maintenance", "internal/mcp", "internal/netguard", "internal/stream", "internal/web", "smtp/inbound"},
	},
	{pkg: "internal/passhash", imports: nothing},
	{pkg: "internal/web/chart", imports: nothing},
	{pkg: "client", imports: []string{"gen"}},
	{pkg: "internal/cli", imports: []string{"client", "gen", "internal/nearname"}},
	{pkg: "internal/httpserver", imports: []string{"internal/netguard", "internal/work"}},
	{pkg: "cmd/postroom", imports: append([]string{"internal/testclock"}, everything...)},

	{pkg: "internal/mail/mailtest", imports: nothing},
	{pkg: "store/storetest", imports: []string{"store", "internal/mail", "store/migrations", "internal/testpg"}},
	{pkg: "smtp/smtptest"},
	{pkg: "internal/testpg", imports: nothing},
	{pkg: "internal/testprogram", imports: nothing},
	{pkg: "internal/s3test", imports: []string{"internal/skiptest"}},
	{pkg: "internal/skiptest", imports: []string{"internal/cputime"}},
	{pkg: "internal/waittest", imports: nothing},
	{pkg: "internal/acmetest", imports: []string{"smtp/smtptest", "internal/skiptest"}},
	{pkg: "internal/cputime", imports: nothing},
	{pkg: "internal/cpubudget", imports: nothing},
	{pkg: "internal/lineartest", imports: []string{"internal/cpubudget", "internal/cputime"}},
	{pkg: "internal/contractcheck", imports: []string{"internal/timeform"}},
	{pkg: "internal/testpg/cmd/withpg", imports: []string{"internal/testpg"}},
	{pkg: "internal/faults", imports: nothing, tests: append([]string{"bench/harness", "internal/crashpoint", "internal/testclock"}, everything...)},
	{pkg: "contract", imports: nothing, tests: everything},
	{pkg: "bench", imports: nothing, tests: everything},
	{pkg: "bench/*", imports: slices.Concat(forTests, everything, []string{"bench/harness"}), tests: everything},
	{pkg: "tools/gotest", imports: nothing},
	{pkg: "tools/picture", imports: nothing},
	{pkg: "tools/sbom", imports: nothing},
	{pkg: "tools/site", imports: []string{"gen", "internal/docs"}},
	{pkg: "tools/specgen", imports: nothing},
	{pkg: "tools/score", imports: []string{"store", "smtp", "smtp/inbound", "internal/mail", "internal/mail/*", "internal/mailauth", "tools/labelled"}},
	{pkg: "tools/labelled", imports: []string{"internal/mail", "internal/mail/mime"}},
	{pkg: "tools/train", imports: []string{"internal/mail/extract", "tools/labelled"}},
	{pkg: ".", imports: nothing}, // this test
}

// goPackage is one folder of Go files with what they import.
type goPackage struct {
	name    string // below the module
	imports []string
	tests   []string // what its _test.go files import
	files   int      // written by hand, without tests
}

// maxFiles limits the hand-written files of a folder, without tests, so that a
// newcomer can find the right one.
const maxFiles = 40

func TestImports(t *testing.T) {
	t.Parallel()
	for _, p := range readPackages(t) {
		for _, fault := range faultsOf(p) {
			t.Error(fault)
		}
	}
}

// TestImportsFindsFaults shows that the check above can fail.
func TestImportsFindsFaults(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		pkg  goPackage
		want []string
	}{
		{
			name: "what the table allows",
			pkg:  goPackage{name: "handlers", imports: []string{"context", module + "/store", "github.com/lib/pq"}},
		},
		{
			name: "the SMTP server in the API",
			pkg:  goPackage{name: "handlers", imports: []string{module + "/smtp"}},
			want: []string{"handlers imports smtp, which the import table does not allow"},
		},
		{
			name: "anything in the store",
			pkg:  goPackage{name: "store", imports: []string{module + "/internal/webhook"}},
			want: []string{"store imports internal/webhook, which the import table does not allow"},
		},
		{
			name: "test helpers in tests",
			pkg:  goPackage{name: "smtp", tests: []string{module + "/smtp", module + "/store/storetest"}},
		},
		{
			name: "test helpers in a program",
			pkg:  goPackage{name: "cmd/postroom", imports: []string{module + "/internal/testpg"}},
			want: []string{"cmd/postroom imports internal/testpg, which the import table does not allow"},
		},
		{
			name: "a layer above, in a test",
			pkg:  goPackage{name: "smtp", tests: []string{module + "/handlers"}},
			want: []string{"smtp imports handlers in its tests, which the import table does not allow"},
		},
		{
			name: "as many files as a folder may hold",
			pkg:  goPackage{name: "handlers", files: maxFiles},
		},
		{
			name: "too many files in a folder",
			pkg:  goPackage{name: "handlers", files: maxFiles + 1},
			want: []string{"handlers has 41 files without tests: split it, since a folder may hold 40"},
		},
		{
			name: "a package without a row",
			pkg:  goPackage{name: "internal/util"},
			want: []string{"internal/util is not in the import table: add a row to layers in imports_test.go"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, faultsOf(tt.pkg)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// readPackages reads the imports out of the files themselves. `go list` would
// leave out files of other platforms and tags, and `go test` would repeat an old
// result because it cannot see that the output of `go list` changed.
func readPackages(t *testing.T) []goPackage {
	t.Helper()
	byDir := map[string]*goPackage{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(file, entry.Name())
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		imports, generated, err := readHead(file)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Dir(file))
		if byDir[name] == nil {
			byDir[name] = &goPackage{name: name}
		}
		if p := byDir[name]; strings.HasSuffix(file, "_test.go") {
			p.tests = append(p.tests, imports...)
		} else {
			p.imports = append(p.imports, imports...)
			if !generated {
				p.files++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var packages []goPackage
	for _, name := range slices.Sorted(maps.Keys(byDir)) {
		packages = append(packages, *byDir[name])
	}
	return packages
}

// enter leaves out the folders that the go command leaves out, and those of
// other modules.
func enter(dir, name string) error {
	if dir == "." {
		return nil
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	if name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || err == nil {
		return filepath.SkipDir
	}
	return nil
}

// readHead returns the imports of a file, and whether it is generated.
func readHead(file string) (paths []string, generated bool, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return nil, false, err
	}
	for _, spec := range parsed.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", file, err)
		}
		paths = append(paths, p)
	}
	return paths, ast.IsGenerated(parsed), nil
}

// faultsOf checks p against the table and the number of its files.
func faultsOf(p goPackage) []string {
	row := slices.IndexFunc(layers, func(l layer) bool { return matches(l.pkg, p.name) })
	if row < 0 {
		return []string{p.name + " is not in the import table: add a row to layers in imports_test.go"}
	}
	allowed := layers[row].imports
	inTests := slices.Concat(allowed, layers[row].tests, forTests, []string{p.name})
	faults := append(forbidden(p.name, "", p.imports, allowed), forbidden(p.name, " in its tests", p.tests, inTests)...)
	if p.files > maxFiles {
		faults = append(faults, fmt.Sprintf("%s has %d files without tests: split it, since a folder may hold %d", p.name, p.files, maxFiles))
	}
	return faults
}

// forbidden reports each import of this module that is not among the allowed ones.
func forbidden(name, where string, imports, allowed []string) []string {
	var faults []string
	slices.Sort(imports)
	for _, imported := range slices.Compact(imports) {
		below, ours := strings.CutPrefix(imported, module+"/")
		if ours && !slices.ContainsFunc(allowed, func(pattern string) bool { return matches(pattern, below) }) {
			faults = append(faults, fmt.Sprintf("%s imports %s%s, which the import table does not allow", name, below, where))
		}
	}
	return faults
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
