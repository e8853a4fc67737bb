package bounce

import (
	"slices"
	"strings"
	"testing"
)

// TestPhrases checks that every section of phrases.txt is read and that its
// phrases can match.
func TestPhrases(t *testing.T) {
	t.Parallel()
	p := phrases()
	lists := [][]string{p.subject, p.text, p.held, p.release, p.delayed, p.final, p.original, p.recipient, p.certain, p.always, p.address, p.unknown, p.wish, p.delivered, p.who, p.absent, p.others}
	for _, s := range p.stages {
		if s.stage == stageUnknown {
			t.Errorf("%q are of no known stage", s.list)
		}
		lists = append(lists, s.list)
	}
	known := []Reason{
		ReasonNoMailbox, ReasonNoDomain, ReasonMoved, ReasonFull, ReasonDisabled, ReasonTooLarge, ReasonSender, ReasonUnproven, ReasonBlocked,
		ReasonRate, ReasonContent, ReasonRefused, ReasonRelay, ReasonExpired, ReasonNetwork, ReasonSystem,
	}
	for _, r := range p.reasons[1:] { // the first is the section "wish"
		if !slices.Contains(known, r.reason) {
			t.Errorf("unknown reason %q", r.reason)
		}
		lists = append(lists, r.list)
	}
	if want := strings.Count(phraseFile, "\n== "); len(lists) != want {
		t.Errorf("%d sections are read, the file has %d", len(lists), want)
	}
	for _, list := range lists {
		if len(list) == 0 {
			t.Error("an empty section")
		}
		for _, phrase := range list {
			if strings.TrimSpace(phrase) == "" || phrase != strings.ToLower(phrase) || strings.Contains(phrase, "  ") {
				t.Errorf("%q is empty, has capitals or two spaces", phrase)
			}
		}
	}
}
