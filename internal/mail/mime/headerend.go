package mime

import (
	"bytes"
	"strings"
)

// A headerEnd decides where a header ends that has lines which are neither a field
// nor the continuation of one. Programs add such lines to a header, and others
// forget the empty line after it, so that the body follows at once. A common field
// that the header did not have yet shows that it goes on; else the first of these
// lines begins the body.
type headerEnd struct {
	odd     int    // where the first line of the possible body begins, or -1
	checked int    // how much of the header is in seen
	seen    uint64 // which of commonFields the header has
}

// maxOdd is how far to look for another field of the header, in bytes.
const maxOdd = 8 << 10

// read reads a line that is about to be added to the header. It returns true if the
// header has certainly ended before the line or an earlier one: the line may be a
// delimiter, or begin the header of a quoted message.
func (e *headerEnd) read(header, line []byte) (ended bool) {
	switch {
	case !IsHeaderLine(line):
		if e.odd < 0 {
			e.odd = len(header)
		}
		return bytes.HasPrefix(line, []byte("--"))
	case e.odd < 0:
		return false
	}
	if e.checked < e.odd {
		Fields(header[e.checked:e.odd], func(f Field) { e.seen |= commonField(f.Raw) })
		e.checked = e.odd
	}
	field := commonField(line)
	if e.seen&field != 0 {
		return field&onlyOnce != 0
	}
	if field != 0 {
		e.seen |= field
		e.odd = -1
	}
	return false
}

// body returns where the body begins in a header to which read was applied, or -1
// if it is not in there. The last fields before the first odd line belong to the
// body if their names are words of a text, as in "Code: 482913".
func (e *headerEnd) body(header []byte) int {
	at := e.odd
	for at > 0 {
		start := bytes.LastIndexByte(header[:at-1], '\n') + 1
		if line := header[start:at]; !isTextField(line) {
			break
		}
		at = start
	}
	return at
}

// isTextField reports whether a line that looks like a field is rather text: its
// name is a single word, and no field that is in use.
func isTextField(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	return colon > 0 && IsFieldName(line[:colon]) && bytes.IndexByte(line[:colon], '-') < 0 && commonField(line) == 0
}

// commonFields are the fields that nearly all headers of messages and parts are
// made of, and those others whose names are single words.
var commonFields = func() map[string]uint64 {
	fields := map[string]uint64{}
	for i, name := range strings.Fields(`from to cc subject date message-id mime-version content-type
		bcc in-reply-to references reply-to sender return-path received content-transfer-encoding content-disposition content-id content-description content-language content-location
		dkim-signature domainkey-signature authentication-results received-spf arc-seal arc-message-signature arc-authentication-results delivered-to
		list-id list-unsubscribe list-unsubscribe-post precedence auto-submitted feedback-id errors-to user-agent x-mailer x-priority
		thread-topic thread-index importance priority organization comments keywords status lines language sensitivity encrypted newsgroups path
		approved xref expires supersedes`) {
		fields[name] = 1 << i
	}
	return fields
}()

// onlyOnce are those of the first line above, which a header has once.
const onlyOnce = 1<<8 - 1

// commonField returns the bit of the field that a line begins with, or 0.
func commonField(line []byte) uint64 {
	const longest = 32
	colon := bytes.IndexByte(line[:min(len(line), longest)], ':')
	if colon <= 0 {
		return 0
	}
	return commonFields[string(bytes.ToLower(bytes.TrimRight(line[:colon], " \t")))]
}
