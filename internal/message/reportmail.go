package message

import (
	"errors"
	"io"
	"strings"
)

// reportMail is what of a mail can make it a report.
type reportMail struct {
	from       Address
	hasFrom    bool
	to         []Address
	subject    string
	nullPath   bool      // the envelope or Return-Path names no sender
	failed     []Address // X-Failed-Recipients
	auto       string    // Auto-Submitted, its first word
	vacation   bool      // another field says that a machine answers
	inReplyTo  []string
	references []string
	isReport   bool // multipart/report of deliveries

	isOtherReport bool // multipart/report of something else

	text     textParts // of the parts to read, in order
	html     textParts
	status   string // fields of message/delivery-status
	feedback string // fields of message/feedback-report
	original string // header of the mail that is reported on

	head  string   // what a mail server wrote: text up to the original
	tail  string   // the original as quoted in the text
	lines []string // of head
	leads []string // the recipient that each of them begins with, or ""
}

// readReportMail goes through a mail once.
func readReportMail(r io.Reader, lim Limits) (*reportMail, error) {
	m, w := &reportMail{}, newWalker(r, lim)
	if err := w.readHeader(); err != nil {
		return nil, err
	}
	if w.truncated {
		return nil, ErrHeaderTooLarge
	}
	fields(w.header, m.readField)
	var preamble []byte
	w.preamble = func(b []byte) {
		if len(preamble) < maxReportText {
			preamble = append(preamble, b...)
		}
	}
	for {
		leaf, err := w.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := m.readPart(w, &leaf); err != nil {
			return nil, err
		}
	}
	if w.parts == 0 {
		m.text.add(unixLines(toUTF8(preamble, "")))
	}
	m.splitText()
	return m, nil
}

// readField takes one field of the header of the mail.
func (m *reportMail) readField(f field) {
	switch {
	case f.is("from"):
		if a := firstAddress(f); a != nil && !m.hasFrom {
			m.from, m.hasFrom = *a, true
		}
	case f.is("to"):
		m.to, _ = parseAddressList(f.unfolded(), maxReported)
	case f.is("subject") && m.subject == "":
		m.subject = f.text()
	case f.is("return-path"):
		path := strings.ToLower(strings.Trim(f.unfolded(), "<> \t"))
		m.nullPath = m.nullPath || path == "" || strings.HasPrefix(path, "mailer-daemon")
	case f.is("x-failed-recipients"):
		more, _ := parseAddressList(f.unfolded(), maxReported-len(m.failed))
		m.failed = append(m.failed, more...)
	case f.is("auto-submitted"):
		m.auto = firstToken(f.text())
	case f.is("x-autoreply"), f.is("x-autorespond"), f.is("x-vacation"), f.is("x-auto-reply-from"):
		m.vacation = true
	case f.is("x-apple-action"):
		m.vacation = m.vacation || strings.EqualFold(f.text(), "vacation")
	case f.is("precedence"):
		m.vacation = m.vacation || strings.Contains(firstToken(f.text()), "auto")
	case f.is("in-reply-to"):
		m.inReplyTo = messageIDs(f.unfolded())
	case f.is("references"):
		m.references = messageIDs(f.unfolded())
	case f.is("content-type"):
		if media := parseMedia(f.unfolded()); media.kind == "multipart/report" {
			kind := strings.ToLower(media.raw("report-type"))
			m.isReport = kind == "" || kind == "delivery-status"
			m.isOtherReport = !m.isReport // that it was read, or how TLS fared
		}
	}
}

// readPart keeps the beginning of a part that may be of a report.
func (m *reportMail) readPart(w *walker, leaf *leafPart) error {
	kind := leaf.kind()
	switch kind {
	case "text/plain", "text/html", "message/delivery-status", "message/global-delivery-status",
		"message/feedback-report", "message/rfc822", "message/global", "message/partial",
		"text/rfc822-headers", "text/rfc822-header", "message/global-headers":
	default:
		return w.body(discard)
	}
	var content []byte
	decoder := newTransferDecoder(leaf.encoding)
	err := w.body(func(piece []byte) {
		if len(content) < maxReportText {
			content = decoder.decode(content, piece)
		}
	})
	content = decoder.finish(content)
	m.keep(kind, unixLines(toUTF8(content[:min(len(content), maxReportText)], leaf.media.raw("charset"))))
	return err
}

// keep files the text of a part under what it is. Of what should come once the
// first counts: the second may be of a mail that is quoted.
func (m *reportMail) keep(kind, text string) {
	first := func(dst *string) {
		if *dst == "" {
			*dst = text
		}
	}
	switch kind {
	case "text/plain":
		if m.text.size < maxReportText {
			m.text.add(text)
		}
	case "text/html":
		if m.html.size < maxReportText {
			m.html.add(text)
		}
	case "message/delivery-status", "message/global-delivery-status":
		first(&m.status)
	case "message/feedback-report":
		first(&m.feedback)
	default:
		head, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n\n")
		if m.original == "" {
			m.original = head
		}
	}
}

// splitText parts what a mail server wrote from the mail that it returns.
func (m *reportMail) splitText() {
	text := m.text.String()
	if strings.TrimSpace(text) == "" {
		text = HTMLToText(m.html.String())
	}
	text = head(text, maxReportText)
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
