// Package inbound receives mail by SMTP (RFC 5321) and stores it.
//
// [Server] is the server that MX records point to. It offers PIPELINING,
// 8BITMIME, SMTPUTF8, SIZE, ENHANCEDSTATUSCODES, LIMITS and STARTTLS. go-smtp runs
// the dialogue: it reads lines from a conn and calls the methods of a session, whose
// Data stores a message through a [Receiver]. Only CRLF.CRLF ends a message. Time,
// bytes, commands, errors, recipients and connections of a client are limited. The
// server does not relay: RCPT refuses recipients that are unknown or deleted, so the
// server never owes a bounce.
//
// [Receiver] parses a message, authenticates it, extracts codes and links, and
// stores one copy per inbox.
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
// message may be stored, but the client sends it again (RFC 1047).
//
// The raw message is stored byte for byte, without dot-stuffing. If the server is
// configured to normalize, a bare CR or LF becomes CRLF. The server adds no
// Received and no Return-Path field, so DKIM signatures stay valid and the
// message can be compared with the sender's copy.
//
// Replies are constant texts or those of go-smtp. The log has the cause of an internal
// error.
package inbound
