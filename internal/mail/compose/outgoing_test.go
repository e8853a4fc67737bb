package compose

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	stdmime "mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"regexp"
	"slices"
	"strings"
	"testing"

	gomessage "github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// TestAThousandMessagesReadBack composes 1,000 messages of all shapes (row
// M12). The bytes must follow RFC 5322, and three parsers must read the same
// content: ours, the standard library and go-message.
func TestAThousandMessagesReadBack(t *testing.T) {
	t.Parallel()
	const messages = 1000
	examples := rapid.Custom(drawMail)
	for i := range messages {
		o := examples.Example(i)
		utf8 := i%20 == 0
		if utf8 {
			o.To = append(o.To, mail.Address{Name: "Jürgen", Email: "jürgen@bücher.example"})
		}
		var raw bytes.Buffer
		if _, err := o.WriteTo(&raw); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		for _, fault := range wireFaults(raw.Bytes(), utf8) {
			t.Errorf("message %d: %s", i, fault)
		}
		m, err := mime.Parse(bytes.NewReader(raw.Bytes()), mail.DefaultLimits())
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if diff := cmp.Diff(asParsed(o), *m, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(mime.Message{}, "Attachments", "Invisible")); !utf8 && diff != "" { // else the domain is in A-labels
			t.Errorf("message %d (-want +got)\n%s", i, diff)
		}
		want := contentsOf(&o)
		for name, read := range map[string]func([]byte) (string, []string, error){"ours": readOurs, "net/mail": readStandard, "go-message": readGoMessage} {
			subject, got, err := read(raw.Bytes())
			if err != nil {
				t.Errorf("message %d, %s: %v\n%s", i, name, err, raw.Bytes())
				continue
			}
			if plaintext.FoldSpace(subject) != plaintext.FoldSpace(o.Subject) {
				t.Errorf("message %d, %s: subject %q, want %q", i, name, subject, o.Subject)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("message %d, %s: parts (-want +got)\n%s", i, name, diff)
			}
		}
		if t.Failed() {
			t.FailNow() // one is enough to read
		}
	}
}

var fieldName = regexp.MustCompile(`(?m)^([!-9;-~]+):`)

// wireFaults returns the violations of the wire format in a message.
func wireFaults(raw []byte, utf8 bool) (faults []string) {
	for line := range bytes.SplitSeq(bytes.TrimSuffix(raw, []byte("\r\n")), []byte("\r\n")) {
		if len(line) > maxLine || bytes.ContainsAny(line, "\r\n\x00") {
			faults = append(faults, fmt.Sprintf("a line of %d bytes, or with a bare line end: %.80q", len(line), line))
		}
	}
	header, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	count := map[string]int{}
	for _, m := range fieldName.FindAllSubmatch(header, -1) {
		count[strings.ToLower(string(m[1]))]++
	}
	for name, want := range map[string]int{"date": 1, "message-id": 1, "from": 1, "subject": 1, "to": 1, "mime-version": 1, "bcc": 0} {
		if count[name] != want {
			faults = append(faults, fmt.Sprintf("%d fields %s, want %d", count[name], name, want))
		}
	}
	for i, c := range raw {
		if c >= 0x80 && (!utf8 || i >= len(header)) {
			faults = append(faults, fmt.Sprintf("8-bit at %d, of a header of %d", i, len(header)))
			break
		}
	}
	if !bytes.HasSuffix(body, []byte("\r\n")) {
		faults = append(faults, "the last line does not end")
	}
	return faults
}

// contentsOf is what every parser must find in a message: its texts and files,
// sorted, with LF line endings and without those at the end of a text, which
// MIME does not preserve.
func contentsOf(o *Outgoing) (list []string) {
	for _, s := range []string{o.Text, o.HTML} {
		if s = sameText(s); s != "" {
			list = append(list, s)
		}
	}
	for _, a := range o.Attachments {
		if s := sameText(string(a.Content)); s != "" {
			list = append(list, s)
		}
	}
	slices.Sort(list)
	return list
}

func sameText(s string) string { return strings.TrimRight(plaintext.UnixLines(s), "\n") }

func readOurs(raw []byte) (subject string, list []string, err error) {
	m, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		return "", nil, err
	}
	o := Outgoing{Text: m.Text, HTML: m.HTML}
	for _, a := range m.Attachments {
		r, err := mime.OpenPart(bytes.NewReader(raw), a.Part, mail.DefaultLimits())
		if err != nil {
			return "", nil, err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return "", nil, err
		}
		o.Attachments = append(o.Attachments, Attachment{Content: content})
	}
	return m.Subject, contentsOf(&o), nil
}

// readStandard reads with net/mail, mime and mime/multipart.
func readStandard(raw []byte) (subject string, list []string, err error) {
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return "", nil, err
	}
	if _, err := m.Header.Date(); err != nil {
		return "", nil, err
	}
	for _, name := range []string{"From", "To", "Cc", "Reply-To"} {
		if _, err := m.Header.AddressList(name); err != nil && !errors.Is(err, netmail.ErrHeaderNotPresent) {
			return "", nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	subject, err = new(stdmime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return "", nil, err
	}
	var o Outgoing
	err = standardPart(m.Header.Get, m.Body, &o)
	return subject, contentsOf(&o), err
}

// standardPart adds the leaves of a part as attachments.
func standardPart(header func(string) string, body io.Reader, o *Outgoing) error {
	kind, params, err := stdmime.ParseMediaType(header("Content-Type"))
	if err != nil {
		return err
	}
	if strings.HasPrefix(kind, "multipart/") {
		r := multipart.NewReader(body, params["boundary"])
		for {
			p, err := r.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := standardPart(p.Header.Get, p, o); err != nil {
				return err
			}
		}
	}
	switch header("Content-Transfer-Encoding") {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}
	content, err := io.ReadAll(body)
	o.Attachments = append(o.Attachments, Attachment{Content: content})
	return err
}

func readGoMessage(raw []byte) (subject string, list []string, err error) {
	e, err := gomessage.Read(bytes.NewReader(raw))
	if err != nil {
		return "", nil, err
	}
	subject, err = e.Header.Text("Subject")
	if err != nil {
		return "", nil, err
	}
	var o Outgoing
	err = e.Walk(func(_ []int, part *gomessage.Entity, err error) error {
		if err != nil || part.MultipartReader() != nil {
			return err
		}
		content, err := io.ReadAll(part.Body)
		o.Attachments = append(o.Attachments, Attachment{Content: content})
		return err
	})
	return subject, contentsOf(&o), err
}
