// Package smtp has what both directions of SMTP share: addresses and paths (RFC
// 5321), envelopes, replies and limits. smtp/inbound receives mail, smtp/queue
// schedules and signs what is sent, and smtp/outbound delivers it to other servers.
package smtp
