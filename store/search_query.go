package store

import "strings"

// TextQuery is what a full-text search looks for. All words are folded alike,
// in the query and in the messages.
type TextQuery struct {
	// Words must all occur. None at all matches nothing.
	Words []string
	// Phrases are words, of those above, that stand together in this order.
	Phrases [][]string
	// Text returns the words of a message, as the index is filled with.
	Text IndexText
}

// matches says whether folded text has what is looked for.
func (q *TextQuery) matches(text string) bool {
	text = " " + text + " "
	for _, w := range q.Words {
		if !strings.Contains(text, " "+w+" ") {
			return false
		}
	}
	for _, p := range q.Phrases {
		if !strings.Contains(text, " "+strings.Join(p, " ")+" ") {
			return false
		}
	}
	return true
}

// maxMarks bounds how many inboxes a search looks up in the index: more of them
// are left to the filters.
const maxMarks = 8

// marks are what the index itself can narrow a search by.
func (f *MessageFilter) marks() [][]string {
	var groups [][]string
	if f.InboxSeq != 0 {
		groups = append(groups, []string{markInbox(f.InboxSeq)})
	} else if len(f.inboxes) > 0 && len(f.inboxes) <= maxMarks {
		var visible []string
		for _, seq := range f.inboxes {
			visible = append(visible, markInbox(seq))
		}
		groups = append(groups, visible)
	}
	switch {
	case f.Direction != "":
		groups = append(groups, []string{markDirection(f.Direction)})
	case f.Status == MessageReceived:
		groups = append(groups, []string{markDirection(DirectionIn)})
	case f.Status != "":
		groups = append(groups, []string{markDirection(DirectionOut)})
	}
	if mark := fromMark(f.FromLike); mark != "" {
		groups = append(groups, []string{mark})
	}
	return groups
}

// fromMark is the mark of a pattern that is an address or "*@domain", else "".
func fromMark(like string) string {
	if like == "" {
		return ""
	}
	if plain, ok := unescapeLike(like); ok {
		return markSender(plain)
	}
	if domain, found := strings.CutPrefix(like, "%@"); found {
		if plain, ok := unescapeLike(domain); ok && !strings.Contains(plain, "@") {
			return markDomain(plain)
		}
	}
	return ""
}
