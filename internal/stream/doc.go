// Package stream sends events to live listeners. It does not depend on HTTP: a
// listener receives each event as bytes, rendered once for all listeners.
//
// One goroutine follows the event log for the whole process, so a thousand
// listeners need no more queries than one. Events are rendered per account: an
// event that is slow to render does not delay other accounts. The hub reads
// only settled events (store.EventTail), so each listener gets the events it
// wants once, in log order. A listener that names its last event first gets the
// later events from the log, then continues without a gap or a repeat.
//
// The queue of a listener is bounded. A stream ends if its listener does not
// keep up, within checkEvery after its key is revoked or expires, and when the
// service stops. The listener can reconnect and name its last event. A key has
// a limited number of live streams. A new stream replaces one whose client is
// gone or that has not read for a heartbeat. If the database is unavailable,
// streams stay open and get the missed events later.
package stream
