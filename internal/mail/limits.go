package mail

import "github.com/postroom/postroom/internal/cpubudget"

// Limits bound the work that one message can cause.
type Limits struct {
	Depth       int // nested multiparts; what lies deeper is one opaque part
	Parts       int // leaf parts that are read
	HeaderBytes int // the header of the message, and all part headers together
	TextBytes   int // decoded bytes of Text, and as many of HTML
	Links       int // links that Extract keeps
	Addresses   int // addresses kept of one header field

	// Budget is the processor time that is left for reading the message, in
	// [cpubudget.Budget.Run]. When it runs out, reading stops. nil sets no bound.
	Budget *cpubudget.Budget
}

// DefaultLimits returns the limits that every mail met in practice stays
// within.
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
