package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/gen"
)

// StreamGap is the type of the first event of a stream if earlier events are
// lost, because the server no longer knows the position to resume from.
const StreamGap = "stream.gap"

// Event is an event of the stream or a webhook.
type Event struct {
	// ID is the same in every stream, endpoint and attempt. It is empty for
	// StreamGap.
	ID string `json:"id"`
	// Type is one of gen.EventType, StreamGap, or a type newer than this
	// client.
	Type      string    `json:"type"`
	CreatedAt time.Time `json:"created_at"`
	TestMode  bool      `json:"test_mode"`
	// InboxID is the inbox of message and draft events, or empty.
	InboxID string `json:"inbox_id"`
	// Data is the resource of the event plus the fields of the type, such as
	// recipient and bounce_type. Use Decode or the methods after it to read it.
	Data json.RawMessage `json:"data"`
	// JSON is the whole event as received.
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

// Decode unmarshals the data into v, like json.Unmarshal.
func (e Event) Decode(v any) error {
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("postroom: the data of %s %s: %w", e.Type, e.ID, err)
	}
	return nil
}

// Message returns the message of a message event, without its HTML.
func (e Event) Message() (*gen.Message, error) { return dataOf[gen.Message](e, "message") }

// Email returns the email of an email event, without its HTML.
func (e Event) Email() (*gen.Email, error) { return dataOf[gen.Email](e, "email") }

// Draft returns the draft of a draft event.
func (e Event) Draft() (*gen.Draft, error) { return dataOf[gen.Draft](e, "draft") }

// Domain returns the domain of a domain event.
func (e Event) Domain() (*gen.Domain, error) { return dataOf[gen.Domain](e, "domain") }

// Recipient returns the address of an event about one recipient, or "".
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
