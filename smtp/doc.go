// Package smtp is mail on the wire, in both directions.
//
// # Receiving
//
// [Server] is the MX side: an SMTP server (RFC 5321) with PIPELINING, 8BITMIME,
// SMTPUTF8, CHUNKING, SIZE, ENHANCEDSTATUSCODES, LIMITS and STARTTLS, written to
// be attacked: a line is run when all of it has come and is well formed, the end
// of a mail is CRLF.CRLF and nothing that looks like it, and whatever a client can
// have much of is counted: time, bytes, commands, errors, recipients, connections.
// It relays for nobody. A recipient is looked up when RCPT names it, and one that is unknown
// or deleted is refused there, so that no bounce is ever owed. [Receiver] does
// what comes after: it reads the mail, takes codes and links out of it, and
// stores one copy for each inbox.
//
// What an answer means:
//
//   - 250 after the data: every copy is on the disk, all of them in one
//     transaction. Nothing is answered with 250 before.
//   - 4yz: nothing is stored; the fault is on our side (database away, disk
//     full, shutting down) or the client asked too much of us at once.
//   - 5yz: nothing is stored and trying again will not help: no such inbox, not
//     our domain, too large, a mail loop, lines that do not end in CRLF.
//
// When the connection breaks after the last line of data and before the answer,
// the mail may be stored although the client never heard so; it will send it
// again (RFC 1047).
//
// The raw mail is kept byte for byte as the client sent it, with the dots of
// transparency removed (and, if the server is told to normalize, with CRLF for a
// CR or LF that stood alone). No Received and no Return-Path field is put before it:
// what is stored can be verified by its DKIM signatures and compared with what
// the sender has.
//
// Answers to clients are constant texts. What went wrong inside is in the log.
//
// # Delivering
//
// [Queue] takes mail that was accepted for sending to where it belongs: to an
// inbox of this install through [Receiver.DeliverLocal], to the configured
// relay, or to the MX hosts of the recipient's domain.
package smtp
