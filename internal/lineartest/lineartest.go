// Package lineartest finds functions whose processor time grows faster than the mail that
// they read. Any stranger can send that mail, so every function that reads it must take
// linear time.
//
// For each reader it builds input from pairs of short texts, and compares the processor
// time for 64 KB with that for 512 KB. It counts the time of its own thread, so that other
// tests and programs do not disturb it.
package lineartest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/cputime"
)

// Placeholders in a unit that are replaced differently in each repetition.
const (
	Number = "\x01" // 0, 1, 2, ...
	Letter = "\x02" // some letter that is not ASCII
)

const (
	small = 64 << 10
	large = 512 << 10
	huge  = 2 << 20 // the largest part of a message that is read
	// fast is what 512 KB may cost without a comparison. If all of the cost were
	// quadratic, 2 MB would still cost less than 0.2 s.
	fast = 10 * time.Millisecond
	// maxGrowth is how much more 512 KB may cost than 64 KB. Linear time gives 8,
	// quadratic time 64; the caches of the processor explain the rest.
	maxGrowth = 24
	// What 2 MB may cost acquits a suspect. Linear time gives a growth of 4 from
	// 512 KB to 2 MB, quadratic time 16. A cold process makes 512 KB expensive, but
	// not 2 MB sixteen times as expensive again.
	maxLastGrowth = 8
	minHuge       = 150 * time.Millisecond // never a fault below
	maxHuge       = 400 * time.Millisecond // always a fault above
	// slowest is what 64 KB may cost. A reader that needs more is not given 512 KB,
	// which could take minutes.
	slowest = 100 * time.Millisecond
	// hopeless is what 64 KB cost when measuring again changes nothing.
	hopeless = 5 * slowest
	// maxFaults is how many patterns of one reader are reported.
	maxFaults = 3
	// shortUnits is how many units of a reader are tried in normal tests.
	shortUnits = 5
	// repeats is how often a suspicious case is measured. The least time counts.
	repeats = 5
)

// Reader is one function that reads mail.
type Reader struct {
	// Name is the name of the exported function or method, as in Message.Extract.
	// After a space it may name the place of the hostile text in the message.
	Name string
	// Units are the short texts that hostile texts are built from, the most effective
	// first.
	Units []string
	// Short is how many of Units are tried without the build tag faults; 0 means
	// shortUnits.
	Short int
	// Read reads a message that contains the hostile text.
	Read func(hostile string)
	// Goroutines means that Read starts goroutines. The time of the whole process
	// counts, and no other reader runs at the same time.
	Goroutines bool
}

// Check fails the test for each reader and each pattern whose cost grows faster than
// linearly.
func Check(t *testing.T, readers []Reader) {
	t.Helper()
	if testing.Short() || cputime.RaceDetector {
		t.Skip("measures processor time")
	}
	// Garbage collection costs time that does not depend on the reader.
	percent := debug.SetGCPercent(1000)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	for _, r := range readers {
		t.Run(r.Name, func(t *testing.T) {
			used := cputime.Used
			if !r.Goroutines {
				t.Parallel()
				used = cpubudget.ThreadTime
			}
			all, faults, spent := patterns(r.units()), 0, time.Duration(0)
			for _, p := range all {
				fault, took := p.check(r.Read, used)
				spent += took
				if fault != "" {
					t.Error(fault)
					if faults++; faults == maxFaults {
						return
					}
				}
			}
			t.Logf("%s: %d patterns in %v", r.Name, len(all), spent.Round(time.Millisecond))
		})
	}
}

// units returns the units to try.
func (r Reader) units() []string {
	n := r.Short
	if n == 0 {
		n = shortUnits
	}
	if long {
		n = len(r.Units)
	}
	return r.Units[:min(n, len(r.Units))]
}

// pattern is one way to build a hostile text of any size.
type pattern struct {
	name  string
	build func(size int) string
}

// patterns returns (u v)^n, u^n v^n and u v^n over the units.
func patterns(units []string) (all []pattern) {
	for i, u := range units {
		all = append(all, pattern{fmt.Sprintf("(%s)^n", show(u)), func(size int) string { return fill(u, size) }})
		for j, v := range units {
			if i == j {
				continue
			}
			if i < j {
				all = append(all, pattern{fmt.Sprintf("(%s %s)^n", show(u), show(v)), func(size int) string { return fill(u+v, size) }})
			}
			all = append(all,
				pattern{fmt.Sprintf("%s^n %s^n", show(u), show(v)), func(size int) string { return fill(u, size/2) + fill(v, size/2) }},
				pattern{fmt.Sprintf("%s %s^n", show(u), show(v)), func(size int) string { return fill(u, 1) + fill(v, size) }})
		}
	}
	return all
}

// show quotes a unit for the report.
func show(unit string) string {
	return strconv.Quote(strings.NewReplacer(Number, "{number}", Letter, "{letter}").Replace(unit))
}

// fill repeats unit up to about size bytes.
func fill(unit string, size int) string {
	if !strings.ContainsAny(unit, "\x01\x02") {
		return strings.Repeat(unit, max(size/len(unit), 1))
	}
	var b strings.Builder
	b.Grow(size + 2*len(unit) + 64)
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(unit, Number, strconv.Itoa(i)), Letter, string(letter(i))))
	}
	return b.String()
}

// letter returns another letter for each i up to some 80,000.
func letter(i int) rune {
	for _, block := range [][2]rune{{0x4e00, 0x9fff}, {0xac00, 0xd7a3}, {0x20000, 0x2a6df}, {0x30000, 0x3134a}} {
		size := int(block[1]-block[0]) + 1
		if i < size {
			return block[0] + rune(i)
		}
		i -= size
	}
	return 'a'
}

// check returns what is wrong, or "", and how much time it used.
func (p pattern) check(read func(string), used func() time.Duration) (fault string, spent time.Duration) {
	little, big := p.build(small), p.build(large)
	measure := func(input string, best *time.Duration) {
		took := cost(read, input, used)
		spent += took
		*best = min(*best, took)
	}
	quick, slow := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	measure(little, &quick)
	for n := 0; quick > slowest; n++ {
		if n == repeats || quick > hopeless {
			return fmt.Sprintf("%s: %d KB cost %v", p.name, small>>10, quick), spent
		}
		measure(little, &quick)
	}
	measure(big, &slow)
	for n := 0; slow > fast && slow > maxGrowth*quick; n++ {
		if n == repeats {
			most := time.Duration(math.MaxInt64)
			if measure(p.build(huge), &most); most < max(minHuge, min(maxHuge, maxLastGrowth*slow)) {
				break
			}
			return fmt.Sprintf("%s: %d KB cost %v, %d KB cost %v, %.0f times as much, and %d KB cost %v",
				p.name, small>>10, quick, large>>10, slow, float64(slow)/float64(quick), huge>>10, most), spent
		}
		runtime.GC() // so that no collection runs during the measurement
		measure(little, &quick)
		measure(big, &slow)
	}
	return "", spent
}

// cost returns the processor time of one call, measured by used.
func cost(read func(string), input string, used func() time.Duration) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := used()
	read(input)
	return used() - begin
}

// Complete fails the test when an exported function or method of the package in this folder
// is neither covered by a reader nor named in others, which gives the reason, and when
// either names a function that does not exist.
func Complete(t *testing.T, readers []Reader, others map[string]string) {
	t.Helper()
	exported := exportedFunctions(t)
	listed := map[string]bool{}
	for _, r := range readers {
		name, _, _ := strings.Cut(r.Name, " ")
		listed[name] = true
	}
	for name := range others {
		if listed[name] {
			t.Errorf("%s is both a reader and in others", name)
		}
		listed[name] = true
	}
	for _, name := range exported {
		if !listed[name] {
			t.Errorf("%s is exported and is not in the list: add a reader for it if it reads mail, or name it in others", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if !slices.Contains(exported, name) {
			t.Errorf("%s is in the list and is not an exported function", name)
		}
	}
}

// exportedFunctions returns the exported functions of the package in this
// folder, and the exported methods of its exported types as Type.Method.
func exportedFunctions(t *testing.T) (names []string) {
	t.Helper()
	noTests := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	packages, err := parser.ParseDir(token.NewFileSet(), ".", noTests, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range packages {
		for _, file := range pkg.Files {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || !f.Name.IsExported() {
					continue
				}
				if name := receiver(f); name == "" {
					names = append(names, f.Name.Name)
				} else if ast.IsExported(name) {
					names = append(names, name+"."+f.Name.Name)
				}
			}
		}
	}
	if len(names) == 0 {
		t.Fatal("the package has no exported functions")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// receiver returns the type that a method belongs to, or "".
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name
	}
	return "?"
}
