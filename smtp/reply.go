package smtp

import "strconv"

// Reply is an answer of the receiving side. As an error it says why a mail or a
// recipient is not taken. The texts are constants, so that no answer can show
// what went on inside.
type Reply struct {
	Code     int    // RFC 5321 section 4.2
	Enhanced string // RFC 3463, such as 5.1.1; "" for the few answers without one
	Text     string
}

// Error implements error with the words that a client gets.
func (r *Reply) Error() string { return string(r.Append(nil)) }

// Temporary says whether trying again later may help.
func (r *Reply) Temporary() bool { return r.Code/100 == 4 }

// Append appends the answer, without a line end, to b.
func (r *Reply) Append(b []byte) []byte {
	b = append(strconv.AppendInt(b, int64(r.Code), 10), ' ')
	if r.Enhanced != "" {
		b = append(append(b, r.Enhanced...), ' ')
	}
	return append(b, r.Text...)
}
