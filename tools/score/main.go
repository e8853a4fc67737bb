// Command score reads a folder of messages with expected results and prints how
// many results are correct: codes and links, MIME, reply text, threads, bounces,
// SPF. Grades other than "core" have figures of their own. Missing files are
// skipped.
//
//	go run ./tools/score [-v] FOLDER
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
)

func main() {
	verbose := flag.Bool("v", false, "list what is missed")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: score [-v] FOLDER")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, flag.Arg(0), *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "score:", err)
		os.Exit(1)
	}
}

// row is one line of the table.
type row struct {
	name  string
	value string
	goal  string // "" without a goal
	met   bool
}

// scorer reads and scores one kind of record.
type scorer struct {
	file  string
	score func(ctx context.Context, c *corpus) ([]row, error)
}

var scorers = []scorer{
	{"codes.jsonl", scoreCodes},
	{"mime.jsonl", scoreMIME},
	{"replies.jsonl", scoreReplies},
	{"threads.jsonl", scoreThreads},
	{"bounces.jsonl", scoreBounces},
	{"auth.jsonl", scoreSPF},
}

func run(ctx context.Context, w io.Writer, folder string, verbose bool) error {
	c := &corpus{folder: folder, missed: io.Discard}
	if verbose {
		c.missed = w
	}
	var rows []row
	for _, s := range scorers {
		if !c.has(s.file) {
			rows = append(rows, row{name: s.file, value: "is not there"})
			continue
		}
		more, err := s.score(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
		rows = append(rows, more...)
	}
	return printRows(w, rows)
}

func printRows(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		outcome := ""
		switch {
		case r.goal == "":
		case r.met:
			outcome = "met"
		default:
			outcome = "MISSED"
		}
		if _, err := fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.name, r.value, r.goal, outcome); err != nil {
			return err
		}
	}
	return t.Flush()
}

// share is a fraction.
type share struct{ right, all int }

func (s *share) add(right bool) {
	s.all++
	if right {
		s.right++
	}
}

func (s share) rate() float64 {
	if s.all == 0 {
		return 1
	}
	return float64(s.right) / float64(s.all)
}

func (s share) String() string { return fmt.Sprintf("%.3f (%d of %d)", s.rate(), s.right, s.all) }

// atLeast returns a row for a share with a goal.
func (s share) atLeast(name string, goal float64) row {
	return row{name: name, value: s.String(), goal: fmt.Sprintf(">= %.2f", goal), met: s.rate() >= goal}
}

// plain returns a row for a share without a goal.
func (s share) plain(name string) row { return row{name: name, value: s.String()} }

// byGrade holds one tally for each grade of records. The goals are about the
// grade "core"; "edge" and "policy" are records on which careful readers differ.
type byGrade[T any] map[string]*T

const core = "core"

// of returns the tally of a grade. Records without a grade are core.
func (g byGrade[T]) of(grade string) *T {
	grade = cmp.Or(grade, core)
	if g[grade] == nil {
		g[grade] = new(T)
	}
	return g[grade]
}

// rows returns the rows of all grades, core first. It removes the goals of the
// others and appends their grade to the names.
func (g byGrade[T]) rows(of func(*T) []row) []row {
	all := of(g.of(core))
	for _, grade := range slices.Sorted(maps.Keys(g)) {
		if grade == core {
			continue
		}
		for _, r := range of(g[grade]) {
			r.name, r.goal = r.name+", "+grade, ""
			all = append(all, r)
		}
	}
	return all
}

// none returns a row for a count that should be 0.
func none(name string, n, all int) row {
	return row{name: name, value: fmt.Sprintf("%d of %d", n, all), goal: "0", met: n == 0}
}
