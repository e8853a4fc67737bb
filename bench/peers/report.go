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
	for _, name := range []string{"Postroom", "Mailpit", "Postfix", "bare go-smtp"} {
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

// The measures of the chart, in pixels.
const (
	chartWidth, labelWidth, barHeight, rowGap, valueWidth = 760, 170, 16, 22, 60
	chartTop                                              = 40
)

var colours = map[string]string{"Postroom": "#2563eb", "Mailpit": "#0d9488", "Postfix": "#b45309", "bare go-smtp": "#9ca3af"}

// chart draws a group of bars for each shape. Each group has its own scale, because the
// rates differ by a factor of ten between them.
func chart(all []median) string {
	names := servers(all)
	var b strings.Builder
	height := chartTop + len(shapes)*(len(names)*(barHeight+2)+rowGap)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" font-family="sans-serif" font-size="12">`+"\n",
		chartWidth, height)
	b.WriteString("<title>Messages received in a second</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n")
	x := labelWidth
	for _, name := range names {
		fmt.Fprintf(&b, `<rect x="%d" y="12" width="12" height="12" fill="%s"/><text x="%d" y="22" fill="#111">%s</text>`+"\n", x, colours[name], x+16, name)
		x += 120
	}
	y := chartTop
	for _, s := range shapes {
		most := 0.0
		for _, name := range names {
			r, _ := rate(all, name, s)
			most = max(most, r)
		}
		fmt.Fprintf(&b, `<text x="8" y="%d" fill="#111">%v</text>`+"\n", y+12, s)
		for _, name := range names {
			r, _ := rate(all, name, s)
			width := int(r / most * (chartWidth - labelWidth - valueWidth))
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><text x="%d" y="%d" fill="#111">%.0f</text>`+"\n",
				labelWidth, y, width, barHeight, colours[name], labelWidth+width+6, y+12, r)
			y += barHeight + 2
		}
		y += rowGap
	}
	b.WriteString("</svg>\n")
	return b.String()
}
