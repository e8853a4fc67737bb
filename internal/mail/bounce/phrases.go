package bounce

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// phraseFile describes itself.
//
//go:embed phrases.txt
var phraseFile string

// phraseTable is the content of phraseFile.
type phraseTable struct {
	subject, text, held, release, delayed, final, delivered, original, recipient, certain, always, address, unknown, wish []string
	who, absent, others                                                                                                   []string

	stages  []stagePhrases  // in order of precedence
	reasons []reasonPhrases // likewise
}

// stagePhrases show the stage of a rejection. A transcript may show a pipelined
// DATA before the reply to a recipient.
type stagePhrases struct {
	stage stage
	list  []string
}

type reasonPhrases struct {
	reason Reason
	list   []string
}

// phrases is built on first use and then only read.
var phrases = sync.OnceValue(func() *phraseTable {
	t := &phraseTable{}
	lists := map[string]*[]string{
		"subject": &t.subject, "text": &t.text, "held": &t.held, "release": &t.release, "delayed": &t.delayed, "final": &t.final, "delivered": &t.delivered,
		"original": &t.original, "recipient": &t.recipient, "certain": &t.certain,
		"always": &t.always, "address": &t.address, "unknown": &t.unknown, "wish": &t.wish,
		"who": &t.who, "absent": &t.absent, "others": &t.others,
	}
	stages := map[string]stage{"mail": stageMail, "rcpt": stageRcpt, "data": stageData}
	for section := range strings.SplitSeq("\n"+phraseFile, "\n== ") {
		name, body, _ := strings.Cut(section, "\n")
		list := phrasesIn(body)
		kind, of, _ := strings.Cut(name, " ")
		switch kind {
		case "stage":
			t.stages = append(t.stages, stagePhrases{stages[of], list})
		case "reason":
			t.reasons = append(t.reasons, reasonPhrases{Reason(of), list})
		default:
			if dst := lists[name]; dst != nil {
				*dst = list
			}
		}
	}
	for i := len(t.reasons) - 1; i >= 0; i-- { // the last section of the reason
		if r := &t.reasons[i]; r.reason == ReasonNoMailbox {
			r.list = slices.Concat(r.list, t.certain, t.unknown)
			break
		}
	}
	t.reasons = append([]reasonPhrases{{ReasonRefused, t.wish}}, t.reasons...)
	return t
})

// phrasesIn returns the phrases of a section.
func phrasesIn(body string) (list []string) {
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		for phrase := range strings.SplitSeq(line, "|") {
			phrase = strings.TrimSpace(phrase)
			if rest, ok := strings.CutPrefix(phrase, "_"); ok {
				phrase = " " + rest
			}
			if rest, ok := strings.CutSuffix(phrase, "_"); ok {
				phrase = rest + " "
			}
			list = append(list, phrase)
		}
	}
	return list
}
