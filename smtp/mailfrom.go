package smtp

import (
	"strconv"
	"strings"
)

// mail answers MAIL: it begins a transaction.
func (s *session) mail(cmd command) *Reply {
	switch {
	case s.helo == "":
		return replyHelloFirst
	case s.chunks != nil:
		return replyInChunks
	case s.open:
		return replyNestedMail
	}
	rest, ok := cmd.prefixed("FROM:")
	if !ok {
		return replySyntax
	}
	from, rest, ok := parsePath(rest)
	if !ok {
		return replyBadSender
	}
	utf8, fault := s.mailParameters(rest)
	switch {
	case fault != nil:
		return fault
	case !utf8 && !isASCII(from):
		return replyNeedsUTF8
	}
	s.wire.begin()
	s.wire.earn()
	s.open = true
	s.env = Envelope{
		MailFrom:   from,
		RemoteAddr: s.wire.ip.String(),
		HELO:       s.helo,
		TLS:        s.wire.encrypted(),
		UTF8:       utf8,
	}
	return replySender
}

// mailParameters looks at the parameters of MAIL: SIZE (RFC 1870), BODY (RFC
// 6152) and SMTPUTF8 (RFC 6531).
func (s *session) mailParameters(text string) (utf8 bool, fault *Reply) {
	params, ok := parameters(text)
	if !ok {
		return false, replySyntax
	}
	for name, value := range params {
		switch name {
		case "SIZE":
			fault = s.checkSize(value)
		case "BODY":
			if v := strings.ToUpper(value); v != "7BIT" && v != "8BITMIME" {
				fault = replyParameter
			}
		case "SMTPUTF8":
			utf8 = true
			if value != "" {
				fault = replySyntax
			}
		default:
			fault = replyParameter
		}
		if fault != nil {
			return false, fault
		}
	}
	return utf8, nil
}

// checkSize looks at a declared size. One that no mail can have, beyond 63 bits,
// is as little a size as "-1".
func (s *session) checkSize(value string) *Reply {
	if strings.TrimLeft(value, "0123456789") != "" {
		return replySyntax
	}
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return replySyntax
	case n > s.server.cfg.MaxSize:
		return replyTooLarge
	}
	return nil
}

// rcpt answers RCPT.
func (s *session) rcpt(cmd command) {
	r := s.addRcpt(cmd)
	if r == replyNoInbox && !s.server.guesses.allow(s.wire.from) {
		r = replyGuessing
	}
	s.answer(r)
}

func (s *session) addRcpt(cmd command) *Reply {
	switch {
	case s.chunks != nil:
		return replyInChunks
	case !s.open:
		return replyMailFirst
	case s.rcpts >= s.server.cfg.MaxRecipients:
		return replyTooManyRcpts
	}
	rest, ok := cmd.prefixed("TO:")
	if !ok {
		return replySyntax
	}
	rcpt, rest, ok := parsePath(rest)
	switch {
	case !ok || rcpt == "":
		return replyBadRecipient
	case strings.TrimSpace(rest) != "":
		return replyParameter
	case !s.env.UTF8 && !isASCII(rcpt):
		return replyNeedsUTF8
	}
	t, err := s.lookup(rcpt)
	if err != nil {
		return s.refusal("look up recipient", err)
	}
	s.wire.earn()
	s.rcpts++
	s.env.RcptTo = append(s.env.RcptTo, rcpt)
	s.to = addTarget(s.to, t)
	return replyRcpt
}
