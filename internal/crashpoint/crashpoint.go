// Package crashpoint names the steps of an outbound message, so that tests can end
// the program at each of them as kill -9 does.
//
// In the released program Reach does nothing, and the compiler removes the calls. Only
// with the build tag crashpoints, which the tests use, does it check for the step to
// die at.
package crashpoint

// Step is a moment between two things that the program does.
type Step string

// The steps, in the order in which a message takes them.
const (
	Accept       Step = "accept"        // a send and its cached response are written, not committed
	Queue        Step = "queue"         // they are committed, and the client has no response yet
	Schedule     Step = "schedule"      // the approval of a person is written, not committed
	Due          Step = "due"           // an approved draft that is due is written as sent, not committed
	Claim        Step = "claim"         // the queue has claimed the recipient
	Connect      Step = "connect"       // the connection to the server is open
	Mail         Step = "mail"          // MAIL is sent
	Rcpt         Step = "rcpt"          // MAIL got its reply, RCPT is sent
	Data         Step = "data"          // DATA got its reply
	Dot          Step = "dot"           // the message is sent, including its last line
	Reply        Step = "reply"         // the server has accepted the message
	Mark         Step = "mark"          // the recipient's state is written, not committed
	Event        Step = "event"         // the event is written, not committed
	WebhookClaim Step = "webhook_claim" // the dispatcher has claimed the delivery
	WebhookPost  Step = "webhook_post"  // the endpoint has responded
	WebhookMark  Step = "webhook_mark"  // the result is written, not committed
)
