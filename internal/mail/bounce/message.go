package bounce

import (
	"io"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// reportMail holds the parts of a message that matter in a report.
type reportMail struct {
	from       mail.Address
	hasFrom    bool
	authors    int // addresses in From; 2 stands for more
	to         []mail.Address
	subject    string
	nullPath   bool           // null reverse-path, by the envelope or Return-Path
	failed     []mail.Address // X-Failed-Recipients
	auto       string         // first word of Auto-Submitted
	vacation   bool           // another field marks an automatic reply
	inReplyTo  []string
	references []string
	isReport   bool // multipart/report about deliveries

	isOtherReport bool // multipart/report about something else

	text     string // of the text/plain parts, in order
	html     string
	status   string // fields of message/delivery-status
	feedback string // fields of message/feedback-report
	original string // header of the reported message

	forwarded string // a complaint in a message that was attached

	head  string   // the server's words: text up to the original
	tail  string   // the original as quoted in text
	lines []string // of head
	leads []string // the recipient at the start of each line, or ""
}

// readReportMail reads a message once.
func readReportMail(r io.Reader, lim mail.Limits) (*reportMail, error) {
	m := &reportMail{}
	visitor := mime.Visitor{Field: m.readField, Wants: isReportPart, Text: m.keep, MaxText: maxReportText}
	if err := mime.Visit(r, lim, visitor); err != nil {
		return nil, err
	}
	if text := m.forwarded; text != "" && m.feedback == "" { // a person forwarded the complaint as a file
		visitor.Field, m.original = func(mime.Field) {}, ""
		if err := mime.Visit(strings.NewReader(text), lim, visitor); err != nil {
			return nil, err
		}
	}
	m.splitText()
	return m, nil
}

// isReportPart reports whether a part of this media type may be part of a
// report.
func isReportPart(contentType string) bool {
	switch contentType {
	case "text/plain", "text/html", "message/delivery-status", "message/global-delivery-status",
		"message/feedback-report", "message/rfc822", "message/global", "message/partial",
		"text/rfc822-headers", "text/rfc822-header", "message/global-headers":
		return true
	}
	return false
}

// readField reads one header field of the message.
func (m *reportMail) readField(f mime.Field) {
	switch {
	case f.Is("from"):
		a, more := f.Addresses(1)
		if len(a) > 0 && !m.hasFrom {
			m.from, m.hasFrom = a[0], true
		}
		if m.authors += len(a); more {
			m.authors = 2
		}
	case f.Is("to"):
		m.to, _ = f.Addresses(maxReported)
	case f.Is("subject") && m.subject == "":
		m.subject = f.Text()
	case f.Is("return-path"):
		path := strings.ToLower(strings.Trim(f.Unfolded(), "<> \t"))
		m.nullPath = m.nullPath || path == "" || strings.HasPrefix(path, "mailer-daemon")
	case f.Is("x-failed-recipients"):
		more, _ := f.Addresses(maxReported - len(m.failed))
		m.failed = append(m.failed, more...)
	case f.Is("auto-submitted"):
		m.auto = mime.FirstToken(f.Text())
	case f.IsAutoReply():
		m.vacation = true
	case f.Is("precedence"):
		m.vacation = m.vacation || strings.Contains(mime.FirstToken(f.Text()), "auto")
	case f.Is("in-reply-to"):
		m.inReplyTo = mime.MessageIDs(f.Unfolded())
	case f.Is("references"):
		m.references = mime.MessageIDs(f.Unfolded())
	case f.Is("content-type"):
		if media := mime.ParseMedia(f.Unfolded()); media.Kind == "multipart/report" {
			kind := strings.ToLower(media.Raw("report-type"))
			m.isReport = kind == "" || kind == "delivery-status"
			m.isOtherReport = !m.isReport // about reading (MDN) or TLS
		}
	}
}

// keep stores the text of a part by its kind. Of the kinds that occur once in a
// report, the first part counts; a second may belong to a quoted message.
func (m *reportMail) keep(kind, text string) {
	first := func(dst *string) {
		if *dst == "" {
			*dst = text
		}
	}
	switch kind {
	case "text/plain":
		m.text = appendText(m.text, text)
	case "text/html":
		m.html = appendText(m.html, text)
	case "message/delivery-status", "message/global-delivery-status":
		first(&m.status)
	case "message/feedback-report":
		first(&m.feedback)
	default:
		head, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n\n")
		if m.original == "" {
			m.original = head
			if strings.Contains(strings.ToLower(head), "feedback-report") {
				m.forwarded = text
			}
		}
	}
}

// appendText appends text on a line of its own, up to maxReportText.
func appendText(all, text string) string {
	if len(all) >= maxReportText || text == "" {
		return all
	}
	if all != "" && !strings.HasSuffix(all, "\n") {
		all += "\n"
	}
	return all + text
}

// splitText separates the server's words from the returned message.
func (m *reportMail) splitText() {
	text := m.text
	if strings.TrimSpace(text) == "" {
		text = htmltext.Text(m.html)
	}
	text = plaintext.Truncate(text, maxReportText)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\u00a0")
	}
	end := originalStart(lines)
	m.lines = lines[:end]
	m.leads = make([]string, end)
	for i, line := range m.lines {
		m.leads[i] = leadingAddress(line)
	}
	m.head, m.tail = strings.Join(m.lines, "\n"), strings.Join(lines[end:], "\n")
}
