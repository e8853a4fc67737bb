package store

// EventType names what happened.
type EventType string

// The events of messages.
const (
	EventMessageReceived   EventType = "message.received"
	EventMessageQueued     EventType = "message.queued"
	EventMessageSent       EventType = "message.sent"
	EventMessageDelivered  EventType = "message.delivered"
	EventMessageBounced    EventType = "message.bounced"
	EventMessageComplained EventType = "message.complained"
	EventMessageFailed     EventType = "message.failed"
)

// EventData is what an event keeps beside the resource that it is about. It
// holds no content of mail, so that retention has nothing to delete here.
type EventData struct {
	// Status is the message's at the moment of the event.
	Status MessageStatus `json:"status"`
	// Recipient is whose delivery the event is about.
	Recipient string `json:"recipient,omitempty"`
	// Response is what the other server said.
	Response string `json:"response,omitempty"`
}
