// Package stream hands events out to those who listen while they happen. It
// knows nothing of HTTP: a listener gets each event as bytes that were made
// once for all of them.
//
// One goroutine follows the log for the whole process, so that a thousand
// listeners cost no more queries than one. Events are rendered by account: one
// that is costly to render delays no other account. It reads no further than the log is
// settled (store.EventTail), and so every listener gets the events that it wants
// in the order of the log, each once. Who names the event that it had last gets
// what came after that from the log, and goes on without a gap or a repeat.
//
// What waits for a listener is bounded. One that does not keep up is ended, and
// so are those whose key was revoked or has expired, within checkEvery, and all
// of them when the service stops. Each can come back and name its last event.
// A key has a limited number of live streams. A new one takes the place of one
// whose client has gone, or that has not read for a heartbeat.
// When the database is away the listeners stay, and get later what they missed.
package stream
