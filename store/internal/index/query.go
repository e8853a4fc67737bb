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
	var buckets []string
	for _, b := range q.Buckets {
		var terms []string
		for _, w := range q.Words {
			terms = append(terms, l.quote+b.word(w)+l.quote)
		}
		for _, group := range q.Marks {
			var marks []string
			for _, m := range group {
				marks = append(marks, l.quote+b.mark(m)+l.quote)
			}
			terms = append(terms, "("+strings.Join(marks, l.or)+")")
		}
		buckets = append(buckets, "("+strings.Join(terms, l.and)+")")
	}
	return strings.Join(buckets, l.or)
}
