// Package inbound receives mail by SMTP (RFC 5321) and stores it. go-smtp runs the
// dialogue. In the order in which a message passes through them:
//
//   - server.go: [Server] listens. Its listener admits clients (conns.go) and gives each a
//     conn and a session.
//   - conn.go: the connection that go-smtp reads lines from, with the deadlines, the
//     counts of what a client does, and TLS.
//   - session.go: the methods that go-smtp calls. Mail and Rcpt check the addresses; Data
//     writes the message to a spool, by way of crlf.go, and stores it. login.go is AUTH.
//   - resolve.go: Rcpt finds the inbox of a recipient.
//   - receive.go: [Receiver] authenticates the message, parses it (incoming.go), reads it
//     as a report on sent mail (report.go), and stores one copy per inbox.
//
// The reply to a message means:
//
//   - 250: every copy is on disk, stored in one transaction.
//   - 4yz: nothing is stored. The fault is ours (database unreachable, disk full,
//     shutdown), or the client temporarily exceeded a limit.
//   - 5yz: nothing is stored, and a retry does not help: unknown inbox, foreign
//     domain, message too large, mail loop, lines that do not end with CRLF.
//
// If the connection breaks between the end of the message and the reply, the
// message may be stored, but the client sends it again (RFC 1047). The server never owes
// a bounce, because RCPT refuses recipients that are unknown or deleted.
//
// The raw message is stored byte for byte, without dot-stuffing and without fields of our
// own, so that DKIM signatures stay valid. If the server is configured to normalize, a
// bare CR or LF becomes CRLF.
package inbound
