// Package queue delivers accepted mail. It claims due recipients with a lease,
// signs each message once, delivers it to an inbox of this installation, to the
// relay or to the MX hosts of the recipient's domain, and records the result.
package queue
