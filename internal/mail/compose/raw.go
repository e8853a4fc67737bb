package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
)

// OptionPrefix begins the names of the header fields by which a client sets
// options of a message, in lower case.
const OptionPrefix = "x-postroom-"

// Raw is a message that a client composed. Sending changes only some
// fields of its header: the options and Bcc are removed, and a missing Message-ID
// or Date is added. Lines that are too long to be sent are folded, or their part is
// encoded again.
type Raw struct {
	// Options are the option fields in order: the name in lower case without
	// OptionPrefix, and the value.
	Options [][2]string
	// From is the author, the only one. Sender is the address in the field Sender, or nil.
	From   mail.Address
	Sender *mail.Address
	// HeaderID is the Message-ID with angle brackets, "" if there was none.
	HeaderID string

	hasID, hasDate bool

	trace  []byte // fields before the header
	header []byte // with the empty line
	body   io.ReadSeeker
	at     int64           // where the body begins
	long   []mime.LongPart // parts that are written in another encoding
}

// isRemoved reports whether a field must not leave, or is one that the receiving server
// adds. A client that sends a message for the first time has not resent it.
func isRemoved(name string) bool {
	return name == "bcc" || name == "return-path" || strings.HasPrefix(name, "resent-")
}

// single are fields that a message has at most once (RFC 5322 section 3.6). With
// two, programs disagree about which one counts.
var single = []string{"from", "sender", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references", "mime-version", "content-type", "content-transfer-encoding"}

// ReadRaw reads the header of a message in which every line ends
// with CRLF. Its error is a *FieldError if the message cannot be sent, or that of
// r, which stays in use.
func ReadRaw(r io.ReadSeeker) (*Raw, error) {
	block, err := readHeader(r, mail.DefaultLimits().HeaderBytes)
	if err != nil {
		return nil, err
	}
	raw := &Raw{body: r, at: int64(len(block)), header: make([]byte, 0, len(block)+2)}
	header, _ := bytes.CutSuffix(block, []byte("\r\n"))
	if !bytes.HasSuffix(block, []byte("\r\n\r\n")) && string(block) != "\r\n" { // no body
		header = block
	}
	for line := range bytes.Lines(header) {
		if !mime.IsHeaderLine(line) {
			return nil, &FieldError{"message", "has a line in its header that is not a header field; an empty line must end the header"}
		}
	}
	var from, sender string
	count := map[string]int{}
	mime.Fields(header, func(f mime.Field) {
		name := strings.ToLower(string(f.Name))
		count[name]++
		switch option, isOption := strings.CutPrefix(name, OptionPrefix); {
		case isOption:
			raw.Options = append(raw.Options, [2]string{option, f.Text()})
			return
		case isRemoved(name):
			return
		case name == "from":
			from = f.Unfolded()
		case name == "sender":
			sender = f.Unfolded()
		case name == "date":
			raw.hasDate = true
		case name == "message-id":
			if ids := mime.MessageIDs(f.Unfolded()); len(ids) > 0 {
				raw.HeaderID, raw.hasID = ids[0], true
			} else {
				return // it identifies nothing
			}
		}
		raw.header = append(raw.header, fold(f.Raw)...)
	})
	raw.header = append(raw.header, "\r\n"...)
	for _, name := range single {
		if count[name] > 1 {
			return nil, &FieldError{name, "must occur once in the header"}
		}
	}
	if _, err := (&lineChecker{}).Write(raw.header); err != nil {
		return nil, &FieldError{"message", fmt.Sprintf("has a line of more than %d bytes in its header, without white space at which it could be folded", maxLine)}
	}
	if count["sender"] > 0 {
		a, err := author("sender", sender)
		if err != nil {
			return nil, err
		}
		raw.Sender = &a
	}
	if raw.From, err = author("from", from); err != nil {
		return raw, err
	}
	return raw, raw.shorten()
}

// Remove removes the fields of the header that forged reports.
func (r *Raw) Remove(forged func(mime.Field) bool) {
	kept := make([]byte, 0, len(r.header))
	mime.Fields(r.header, func(f mime.Field) {
		if !forged(f) {
			kept = append(kept, f.Raw...)
		}
	})
	r.header = append(kept, "\r\n"...)
}

// readHeader reads the header with the empty line that ends it, and ends the last
// line of a message without a body. It leaves r somewhere in the body.
func readHeader(r io.Reader, limit int) ([]byte, error) {
	var block []byte
	for {
		block = slices.Grow(block, 2<<10)
		n, err := r.Read(block[len(block):cap(block)])
		from := max(0, len(block)-3)
		block = block[:len(block)+n]
		if bytes.HasPrefix(block, []byte("\r\n")) {
			return block[:2], nil
		}
		if end := bytes.Index(block[from:], []byte("\r\n\r\n")); end >= 0 {
			return block[:from+end+4], nil
		}
		switch {
		case len(block) > limit:
			return nil, &FieldError{"message", fmt.Sprintf("has a header of more than %d bytes", limit)}
		case errors.Is(err, io.EOF):
			if !bytes.HasSuffix(block, []byte("\r\n")) {
				block = append(block, "\r\n"...)
			}
			return block, nil
		case err != nil:
			return nil, fmt.Errorf("read the message: %w", err)
		}
	}
}

// author reads the field From or Sender. It must have exactly one address, in a form that
// all programs read in the same way.
func author(field, value string) (mail.Address, error) {
	list, more := mime.ParseAddressList(value, 2)
	if len(list) != 1 || more {
		return mail.Address{}, &FieldError{field, "must have exactly one address"}
	}
	a := list[0]
	if err := mail.ValidAddress(a.Email); err != nil {
		return mail.Address{}, &FieldError{field, err.Error()}
	}
	value = strings.TrimSpace(value)
	n := len(a.Email) // its domain is in lower case, that of value need not be
	if at := len(value) - n - 2; at >= 0 && strings.EqualFold(value[at:], "<"+a.Email+">") && isPlainName(value[:at]) {
		return a, nil
	}
	if len(value) >= n && strings.EqualFold(value[:n], a.Email) && (len(value) == n || isPlainComment(value[n:])) {
		return a, nil
	}
	return mail.Address{}, &FieldError{field, "must have the form name <address> or address; put a name with special characters in quotes"}
}

// isPlainName reports whether s, which stands before an address in angle brackets,
// is nothing, one quoted string, or words without special characters.
func isPlainName(s string) bool {
	s = strings.Trim(s, " \t")
	if !strings.HasPrefix(s, `"`) {
		return !strings.ContainsAny(s, `<>@,;:"()`)
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i == len(s)-1
		}
	}
	return false
}

// isPlainComment reports whether s, which follows an address, is one comment that
// no program reads as another address.
func isPlainComment(s string) bool {
	s, opened := strings.CutPrefix(s, " (")
	s, closed := strings.CutSuffix(s, ")")
	return opened && closed && !strings.ContainsAny(s, `<>@()\`)
}

// Trace is what a server adds to a submitted message.
type Trace struct {
	Host, With, ID string // of the Received field (RFC 5321 section 4.4)
	HeaderID       string // for a message without Message-ID
	Date           time.Time
}

// Add adds the fields of a submission. The Received field does not name the
// client, whose address is private.
func (r *Raw) Add(t Trace) {
	date := t.Date.Format(time.RFC1123Z)
	r.trace = fmt.Appendf(nil, "Received: by %s with %s id %s;\r\n\t%s\r\n", t.Host, t.With, t.ID, date)
	if !r.hasID {
		r.HeaderID = t.HeaderID
		r.trace = fmt.Appendf(r.trace, "Message-ID: %s\r\n", t.HeaderID)
	}
	if !r.hasDate {
		r.trace = fmt.Appendf(r.trace, "Date: %s\r\n", date)
	}
}

// Reader returns a reader of the message with the encodings of the client. It ends the
// previous one.
func (r *Raw) Reader() (io.Reader, error) {
	if _, err := r.body.Seek(r.at, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the message: %w", err)
	}
	return io.MultiReader(bytes.NewReader(r.trace), bytes.NewReader(r.header), r.body), nil
}

// WriteTo writes the message as it is sent.
func (r *Raw) WriteTo(w io.Writer) (int64, error) {
	if _, err := r.body.Seek(r.at, io.SeekStart); err != nil {
		return 0, fmt.Errorf("read the message: %w", err)
	}
	if len(r.long) > 0 {
		return r.writeLong(w)
	}
	written := int64(0)
	for _, part := range [][]byte{r.trace, r.header} {
		n, err := w.Write(part)
		if written += int64(n); err != nil {
			return written, err
		}
	}
	n, err := io.Copy(w, r.body)
	return written + n, err
}

// writeLong is WriteTo for a message with parts that are encoded again.
func (r *Raw) writeLong(w io.Writer) (int64, error) {
	count := &countingWriter{w: w}
	if _, err := count.Write(r.trace); err != nil {
		return count.n, err
	}
	err := r.writeShort(count, io.MultiReader(bytes.NewReader(r.header), r.body))
	return count.n, err
}
