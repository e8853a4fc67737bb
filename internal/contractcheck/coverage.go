package contractcheck

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// pair is an operation with a status that it documents or that was seen.
type pair struct {
	operation string
	status    int
}

// count records an exchange; op is nil if the contract has no such operation.
func (c *Checker) count(op *Operation, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exchanges++
	if op == nil {
		return
	}
	c.seen[pair{op.OperationID, status}]++
}

// Exchanges returns how many exchanges were checked, including those with undocumented
// responses.
func (c *Checker) Exchanges() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exchanges
}

// Seen returns how often the operation was seen to respond with the status.
func (c *Checker) Seen(operationID string, status int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[pair{operationID, status}]
}

// Statuses returns the documented statuses of the operation, in order.
func (op *Operation) Statuses() []int {
	var out []int
	for key := range op.Responses.Map() {
		if status, err := strconv.Atoi(key); err == nil {
			out = append(out, status)
		}
	}
	slices.Sort(out)
	return out
}

// Table lists each operation with its documented statuses and how often each was seen. The
// last line is the total.
func (c *Checker) Table() string {
	var b strings.Builder
	documented, covered := 0, 0
	for _, op := range c.ops {
		fmt.Fprintf(&b, "%-24s", op.OperationID)
		for _, status := range op.Statuses() {
			n := c.Seen(op.OperationID, status)
			documented++
			if n > 0 {
				covered++
				fmt.Fprintf(&b, " %d:%d", status, n)
			} else {
				fmt.Fprintf(&b, " %d:-", status)
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d of %d documented (operation, status) pairs seen, in %d exchanges\n", covered, documented, c.Exchanges())
	return b.String()
}
