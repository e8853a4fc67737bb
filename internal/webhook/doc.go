// Package webhook posts events to the users' endpoints, signed as Standard
// Webhooks describes (https://www.standardwebhooks.com).
//
// An event is delivered at least once. It may be delivered twice, with the same
// webhook-id, if the endpoint's response is lost or if this process crashes
// before it records the response. A 2xx response ends a delivery. After
// anything else, including a redirect, the delivery is retried on a schedule,
// and fails at its end. A 410 response disables the endpoint, and so do 5 days
// without a success. The deliveries of an endpoint start in the order of their
// events, several at a time. The deliveries about one email or message form a
// queue, across nodes and retries: the next one starts when the previous one
// has succeeded or permanently failed.
//
// Users choose the URLs, so netguard checks every connection. The dispatcher
// follows no redirects, uses no proxy and reads only the beginning of a
// response.
package webhook
