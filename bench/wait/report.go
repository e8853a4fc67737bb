package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// samples are the times from sending to the end of the wait, one for each message.
type samples []time.Duration

// at returns the value that the share p of all samples does not exceed.
func (s samples) at(p float64) time.Duration {
	return s[min(len(s)-1, int(p*float64(len(s))))]
}

func (s samples) print(w io.Writer, o options, took time.Duration) {
	slices.Sort(s)
	from := "MAIL on an open connection"
	if o.connect {
		from = "opening the connection"
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	_, _ = fmt.Fprintf(w, "%d waiters, %d rounds, %d senders, messages of %d bytes, from %s to the end of the wait\n",
		o.waiters, o.rounds, o.senders, o.size, from)
	_, _ = fmt.Fprintf(w, "%d messages in %.1f s, 0 lost: p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, max %.2f ms\n",
		len(s), took.Seconds(), ms(s.at(0.50)), ms(s.at(0.90)), ms(s.at(0.99)), ms(s[len(s)-1]))
}
