// Package hostilemail creates messages that attack their reader in a browser: they try to run
// a script, to load something, or to replace the page around them. It is for tests.
package hostilemail

import (
	_ "embed" // the attacks
	"fmt"
	"html"
	"strings"
)

// Message is one hostile message.
type Message struct {
	Name string // what it tries
	// Its header fields, and the name of its attachment.
	Subject, From, Filename string
	HTML                    string
}

// All returns the messages. Every URL in them begins with target, and each script requests
// one if it runs, so the server at target sees every successful attack.
func All(target string) []Message {
	var all []Message
	headers, places := attacks[0].sources, attacks[len(attacks)-1].sources
	script := fmt.Sprintf(`location='%s/script/ID'`, target)
	add := func(name, source string) {
		id := fmt.Sprintf("%03d", len(all)+1)
		fill := strings.NewReplacer("RUN", strings.ReplaceAll(script, "ID", id), "URL", target+"/load/"+id, "TARGET", target, "ID", id).Replace
		hostile := fill(headers[len(all)%len(headers)])
		all = append(all, Message{
			Name: id + " " + name, HTML: fill(source),
			Subject: hostile, From: hostile, Filename: strings.NewReplacer("/", "_", "\\", "_").Replace(hostile),
		})
	}
	for _, group := range attacks[1 : len(attacks)-1] {
		for i, source := range group.sources {
			add(fmt.Sprintf("%s %d", group.name, i+1), source)
		}
	}
	for _, spelling := range spellings("RUN") {
		for _, place := range places {
			add("javascript: in "+place[:min(12, len(place))], strings.ReplaceAll(place, "JS", spelling))
		}
	}
	add("nested elements", strings.Repeat("<div>", 50_000)+`<img src=x onerror="RUN">`)
	add("nested tables", strings.Repeat("<table><tr><td>", 5_000)+`<script>RUN</script>`)
	add("nested foreign content", strings.Repeat("<svg><math>", 5_000)+`<style><img src=x onerror="RUN">`)
	add("nested formatting", strings.Repeat("<b><i><a href=x>", 5_000)+`<img src=URL onerror="RUN">`)
	add("many attributes", "<img "+strings.Repeat("a=b ", 50_000)+`src=URL onerror="RUN">`)
	add("a long address", `<a href="javascript:RUN//`+strings.Repeat("x", 500_000)+`">x</a>`)
	add("a style that never ends", "<style>"+strings.Repeat("@media all{", 20_000)+"body{background:url(URL)}")
	add("functions in functions", `<p style="width:`+strings.Repeat("calc(", 20_000)+`url(URL)">x</p>`)
	return all
}

//go:embed hostile.txt
var attackText string

// attacks are the attacks of each group: one a line, below "== " and the name of the group.
// The first group is for subjects, names and file names, the last one for places of an address.
var attacks = func() (all []group) {
	signs := strings.NewReplacer("{NUL}", "\x00", "{LF}", "\n", "{FF}", "\x0c", "{VT}", "\x0b", "{NBSP}", "\u00a0", "{LS}", "\u2028", "{TAB}", "\t")
	for part := range strings.SplitSeq(strings.TrimSpace(attackText)[3:], "\n== ") {
		lines := strings.Split(part, "\n")
		for n, line := range lines {
			lines[n] = signs.Replace(line)
		}
		all = append(all, group{lines[0], lines[1:]})
	}
	return all
}()

type group struct {
	name    string
	sources []string
}

// spellings are spellings of a javascript: URL that some program has accepted.
func spellings(run string) []string {
	js := "javascript:" + run
	var decimal strings.Builder
	for _, r := range "javascript:" {
		fmt.Fprintf(&decimal, "&#%07d", r)
	}
	return []string{
		js, "JaVaScRiPt:" + run, " \t\n" + js, "java\tscript:" + run, "java\nscript:" + run, "java&#x0D;script:" + run, "&#1;" + js,
		decimal.String() + run, "javascript&colon;" + run, "java&Tab;script&NewLine;:" + run, "javascript://%0a" + run, html.EscapeString("javascript:\u2028") + run,
	}
}
