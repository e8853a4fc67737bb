package contractcheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxEvent bounds an event, in bytes.
const maxEvent = 256 << 10

// Event checks an event, posted to a webhook endpoint or streamed, and counts it. The event
// must match the section `webhooks` for its type and exactly one variant of the schema Event
// as a client sees it, and must not be too large.
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
	if err := errors.Join(size, mismatch, c.oneVariant(text), checkTimes(text)); err != nil {
		return fmt.Errorf("an event %s: %w: %s", e.Type, brief(err), cut(text))
	}
	return nil
}

// oneVariant checks that an event matches exactly one variant of the schema Event, so that a
// strict union type can read it.
func (c *Checker) oneVariant(text []byte) error {
	var matches []string
	for _, variant := range c.doc.Components.Schemas["Event"].Value.OneOf {
		if c.client.check(variant.Ref, text) == nil {
			matches = append(matches, path.Base(variant.Ref))
		}
	}
	if len(matches) != 1 {
		return fmt.Errorf("it matches %d variants of Event: %s", len(matches), strings.Join(matches, ", "))
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
