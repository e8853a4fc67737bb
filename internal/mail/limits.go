package mail

import "github.com/postroom/postroom/internal/cpubudget"

// Limits limit the work for one message.
type Limits struct {
	Depth       int // nested multiparts; a deeper one becomes one opaque part
	Parts       int // leaf parts
	HeaderBytes int // header of the message, and all part headers together
	TextBytes   int // decoded bytes of the plain text, and of the HTML
	Links       int // links kept
	Addresses   int // addresses kept per header field

	// Budget is the processor time left for reading the message, see
	// [cpubudget.Budget.Run]. Reading stops when it runs out. Nil means no
	// limit.
	Budget *cpubudget.Budget
}

// DefaultLimits returns limits that real messages do not reach.
func DefaultLimits() Limits {
	return Limits{
		Depth:       100,
		Parts:       1000,
		HeaderBytes: 1 << 20,
		TextBytes:   2 << 20,
		Links:       200,
		Addresses:   1000,
	}
}
