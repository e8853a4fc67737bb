package main

import (
	"fmt"
	"strings"
)

// rate returns the rate of a server in a shape, and false if it was not measured.
func rate(all []median, server string, s shape) (float64, bool) {
	for _, m := range all {
		if m.Server == server && m.Connections == s.Connections && m.Bytes == s.Bytes {
			return m.Rate, true
		}
	}
	return 0, false
}

// servers are those that were measured, in the order of the table.
func servers(all []median) []string {
	var out []string
	for _, name := range []string{"Postroom", "Mailpit", "bare go-smtp"} {
		if _, ok := rate(all, name, shapes[0]); ok {
			out = append(out, name)
		}
	}
	return out
}

func (s shape) String() string {
	if s.Connections == 1 {
		return fmt.Sprintf("%d KB, 1 connection", s.Bytes>>10)
	}
	return fmt.Sprintf("%d KB, %d connections", s.Bytes>>10, s.Connections)
}

// printTable prints messages a second as Markdown, and how Postroom compares.
func printTable(all []median) {
	names := servers(all)
	fmt.Println("| Messages a second | " + strings.Join(names, " | ") + " |")
	fmt.Println("|---" + strings.Repeat("|---", len(names)) + "|")
	for _, s := range shapes {
		ours, _ := rate(all, names[0], s)
		fmt.Printf("| %v | %.0f |", s, ours)
		for _, name := range names[1:] {
			r, _ := rate(all, name, s)
			fmt.Printf(" %.0f (%.2f) |", r, ours/r)
		}
		fmt.Println()
	}
	fmt.Println("\nIn brackets: Postroom's rate divided by theirs.")
}
