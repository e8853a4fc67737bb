package contractcheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// maxEvent bounds an event, in bytes.
const maxEvent = 256 << 10

// Event says what the contract has against an event that a webhook endpoint is
// sent or a stream carries, and counts it: it is to be what the section
// `webhooks` says of its type, and not too large.
func (c *Checker) Event(text []byte) error {
	var e struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("an event: %w", err)
	}
	if c.doc.Webhooks[e.Type] == nil {
		return fmt.Errorf("the contract has no event %q", e.Type)
	}
	c.countEvent(e.Type)
	var size error
	if len(text) > maxEvent {
		size = fmt.Errorf("%d bytes", len(text))
	}
	told := c.schemas.check(under("#", "webhooks", e.Type, "post", "requestBody", "content", "application/json", "schema"), text)
	if err := errors.Join(size, told, checkTimes(text)); err != nil {
		return fmt.Errorf("an event %s: %w: %s", e.Type, brief(err), cut(text))
	}
	return nil
}

// EventTypes are those of the contract, sorted.
func (c *Checker) EventTypes() []string { return slices.Sorted(maps.Keys(c.doc.Webhooks)) }

func (c *Checker) countEvent(typ string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events[typ]++
}

// SeenEvents is how many events of the type were seen.
func (c *Checker) SeenEvents(typ string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[typ]
}
