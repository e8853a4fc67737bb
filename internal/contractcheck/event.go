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

// Event checks an event, posted to a webhook endpoint or streamed, and counts it. The event
// must match the section `webhooks` for its type, and must not be too large.
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
	c.mu.Lock()
	c.events[e.Type]++
	c.mu.Unlock()
	var size error
	if len(text) > maxEvent {
		size = fmt.Errorf("%d bytes", len(text))
	}
	mismatch := c.schemas.check(under("#", "webhooks", e.Type, "post", "requestBody", "content", "application/json", "schema"), text)
	if err := errors.Join(size, mismatch, checkTimes(text)); err != nil {
		return fmt.Errorf("an event %s: %w: %s", e.Type, brief(err), cut(text))
	}
	return nil
}

// EventTypes returns the event types of the contract, sorted.
func (c *Checker) EventTypes() []string { return slices.Sorted(maps.Keys(c.doc.Webhooks)) }

// SeenEvents returns how many events of the type were seen.
func (c *Checker) SeenEvents(typ string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[typ]
}
