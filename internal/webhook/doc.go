// Package webhook tells the users' systems of events: it posts each event to
// each endpoint that wants it, signed as Standard Webhooks says
// (https://www.standardwebhooks.com).
//
// An event is delivered at least once. It may come twice when the endpoint's
// answer got lost, or when this process died before it could record it; both
// times with the same webhook-id. An answer of 2xx ends a delivery. Anything
// else, redirects too, is tried again on a schedule, and at its end the delivery
// has failed. 410 turns the endpoint off, and so do 5 days without a success.
// The deliveries of an endpoint begin in the order of their events, several at a
// time. Those about one email or message are a queue, over nodes and retries: the
// next one begins when the one before has succeeded, or has failed for good.
//
// Where we connect to is chosen by strangers, so every connection asks
// netguard, no redirect is followed, no proxy is used, and of an answer only
// the beginning is read.
package webhook
