package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/gen"
)

// StreamGap is the type of an event that the stream begins with when others
// before it are lost: the place that it was to go on from is not known any more.
const StreamGap = "stream.gap"

// Event tells of something that happened, in the stream and to webhooks.
type Event struct {
	// ID is the same in every stream, endpoint and attempt. A StreamGap has none.
	ID string `json:"id"`
	// Type is one of gen.EventType, StreamGap, or newer than this client.
	Type      string    `json:"type"`
	CreatedAt time.Time `json:"created_at"`
	TestMode  bool      `json:"test_mode"`
	// InboxID is the inbox of message and draft events, or empty.
	InboxID string `json:"inbox_id"`
	// Data is the resource that it happened to, with what the type adds:
	// recipient, bounce_type. Decode and the methods after it read it.
	Data json.RawMessage `json:"data"`
	// JSON is the whole event as it came.
	JSON json.RawMessage `json:"-"`
}

var errBadEvent = errors.New("postroom: an event that cannot be read")

func parseEvent(text []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(text, &e); err != nil {
		return Event{}, fmt.Errorf("%w: %w", errBadEvent, err)
	}
	e.JSON = text
	return e, nil
}

// Decode reads the data into v, as json.Unmarshal does.
func (e Event) Decode(v any) error {
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("postroom: the data of %s %s: %w", e.Type, e.ID, err)
	}
	return nil
}

// Message is the message of a message event, without its HTML.
func (e Event) Message() (*gen.Message, error) { return dataOf[gen.Message](e, "message") }

// Email is the email of an email event, without its HTML.
func (e Event) Email() (*gen.Email, error) { return dataOf[gen.Email](e, "email") }

// Draft is the draft of a draft event.
func (e Event) Draft() (*gen.Draft, error) { return dataOf[gen.Draft](e, "draft") }

// Domain is the domain of a domain event.
func (e Event) Domain() (*gen.Domain, error) { return dataOf[gen.Domain](e, "domain") }

// Recipient is the address that an event about one recipient is about, or empty.
func (e Event) Recipient() string {
	var d struct {
		Recipient string `json:"recipient"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	return d.Recipient
}

func dataOf[T any](e Event, object string) (*T, error) {
	var kind struct {
		Object string `json:"object"`
	}
	if err := e.Decode(&kind); err != nil {
		return nil, err
	}
	if kind.Object != object {
		return nil, fmt.Errorf("postroom: %s %s is not about a %s, but %q", e.Type, e.ID, object, kind.Object)
	}
	v := new(T)
	return v, e.Decode(v)
}
