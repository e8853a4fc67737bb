package index

import "strings"

// Query asks for messages of some buckets that have all words and at least one
// mark of each group.
type Query struct {
	Buckets []Bucket
	Words   []string
	Marks   [][]string
}

// terms is how many words and marks are looked up for a bucket.
func (q Query) terms() int {
	n := len(q.Words)
	for _, group := range q.Marks {
		n += len(group)
	}
	return n
}

// text writes the query in the language of the database. Words and marks are
// letters and digits, so nothing is escaped.
func (q Query) text(l language) string {
	var sb strings.Builder
	for i, b := range q.Buckets {
		if i > 0 {
			sb.WriteString(l.or)
		}
		sb.WriteString("(")
		for j, w := range q.Words {
			if j > 0 {
				sb.WriteString(l.and)
			}
			sb.WriteString(l.quote + b.word(w) + l.quote)
		}
		for _, group := range q.Marks {
			for j, m := range group {
				switch {
				case j > 0:
					sb.WriteString(l.or)
				default:
					sb.WriteString(l.and + "(")
				}
				sb.WriteString(l.quote + b.mark(m) + l.quote)
			}
			sb.WriteString(")")
		}
		sb.WriteString(")")
	}
	return sb.String()
}
