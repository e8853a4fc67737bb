package smtp

import "strconv"

// Reply is a reply of the receiving side. As an error it explains why a message
// or a recipient is refused. The texts are constants, so that a reply cannot
// expose internals.
type Reply struct {
	Code     int    // RFC 5321 section 4.2
	Enhanced string // RFC 3463, such as 5.1.1; "" if the reply has none
	Text     string
}

// Error returns the reply as the client receives it.
func (r *Reply) Error() string { return string(r.Append(nil)) }

// Temporary reports whether a retry may succeed.
func (r *Reply) Temporary() bool { return r.Code/100 == 4 }

// Append appends the reply, without a line end, to b.
func (r *Reply) Append(b []byte) []byte {
	b = append(strconv.AppendInt(b, int64(r.Code), 10), ' ')
	if r.Enhanced != "" {
		b = append(append(b, r.Enhanced...), ' ')
	}
	return append(b, r.Text...)
}
