// Package crashpoint names the steps of a mail on its way out, so that tests can
// end the program at each of them as kill -9 does.
//
// In the program as it is built and released Reach does nothing, and the compiler
// leaves it out. Only the build tag crashpoints, which the tests build a program
// of their own with, makes it look for the step to die at.
package crashpoint

// Step is a moment between two things that the program does.
type Step string

// The steps, in the order in which a mail takes them.
const (
	Accept       Step = "accept"        // a send and its answer are written, and not committed
	Queue        Step = "queue"         // they are committed, and nobody was told
	Claim        Step = "claim"         // the queue has claimed the recipient
	Connect      Step = "connect"       // the server was reached
	Mail         Step = "mail"          // MAIL is sent
	Rcpt         Step = "rcpt"          // MAIL is answered, RCPT is sent
	Data         Step = "data"          // DATA is answered
	Dot          Step = "dot"           // the mail is sent, its last line included
	Answer       Step = "answer"        // the server has said that it took the mail
	Mark         Step = "mark"          // the recipient's state is written, and not committed
	Event        Step = "event"         // and so is the event
	WebhookClaim Step = "webhook_claim" // the dispatcher has claimed the delivery
	WebhookPost  Step = "webhook_post"  // the endpoint has answered
	WebhookMark  Step = "webhook_mark"  // the result is written, and not committed
)
