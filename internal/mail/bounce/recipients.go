package bounce

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// foundRecipient is an address that did not get the message, and the line from
// which on the reason follows.
type foundRecipient struct {
	email string
	line  int
}

// findRecipients finds the addresses that a text speaks of: those that the
// server lists apart, else those that begin a line, else those that were
// refused, else the only one there is. The sender of the message, whom the text
// is written to, is one only when it is the only one. whole says that the words
// of an address may stand anywhere.
func (m *reportMail) findRecipients() (found recipientSet, whole bool) {
	for _, a := range m.failed {
		if email := plausibleAddress(a.Email); email != "" {
			found.add(email, m.lineOf(email))
		}
	}
	if len(found) > 0 {
		slices.SortStableFunc(found, func(a, b foundRecipient) int { return a.line - b.line })
		return found, false
	}
	for n, email := range m.leads {
		if email != "" {
			found.add(email, n)
		}
	}
	if found = m.withoutOthers(found); len(found) > 0 {
		return found, false
	}
	for _, look := range []func(string) []string{namedRecipient, refusedAddresses} {
		for n, line := range m.lines {
			for _, email := range look(line) {
				found.add(email, n)
			}
		}
		if found = m.withoutOthers(found); len(found) > 0 {
			return found, true
		}
	}
	if email := m.soleAddress(); email != "" {
		return recipientSet{{email, m.lineOf(email)}}, true
	}
	return nil, false
}

// recipientSet holds each address once, at most maxReported.
type recipientSet []foundRecipient

func (s *recipientSet) add(email string, line int) {
	known := func(f foundRecipient) bool { return strings.EqualFold(f.email, email) }
	if len(*s) < maxReported && !slices.ContainsFunc(*s, known) {
		*s = append(*s, foundRecipient{email, line})
	}
}

// withoutOthers drops the sender and the writer of the report, unless none
// else is left.
func (m *reportMail) withoutOthers(found recipientSet) recipientSet {
	others := slices.DeleteFunc(slices.Clone(found), func(f foundRecipient) bool { return m.isOther(f.email) })
	if len(others) > 0 {
		return others
	}
	return found
}

// isOther reports whether an address is of the sender of the message, or of a
// server.
func (m *reportMail) isOther(email string) bool {
	local := localPart(email)
	return strings.EqualFold(email, m.from.Email) || local == "postmaster" || local == "mailer-daemon" || local == "abuse" || local == "support" ||
		slices.ContainsFunc(m.to, func(a mail.Address) bool { return strings.EqualFold(a.Email, email) })
}

// lineOf returns the number of the first line with an address in it, 0 without
// one.
func (m *reportMail) lineOf(email string) int {
	email = strings.ToLower(email)
	at := slices.IndexFunc(m.lines, func(line string) bool { return strings.Contains(strings.ToLower(line), email) })
	return max(at, 0)
}

// saidOf returns what the text says about a recipient of a delivery status.
func (m *reportMail) saidOf(r *Recipient) string {
	for _, email := range []string{r.Email, r.Original} {
		if email == "" {
			continue
		}
		start := m.lineOf(email)
		if len(m.lines) > 0 && strings.Contains(strings.ToLower(m.lines[start]), strings.ToLower(email)) {
			return m.saidFrom(start, email)
		}
	}
	return plaintext.Truncate(m.head, maxSaid)
}

// saidFrom returns the text about an address from a line on, up to the next
// recipient; "" in a report that says nothing before the original.
func (m *reportMail) saidFrom(start int, email string) string {
	if start >= len(m.lines) {
		return ""
	}
	end := start + 1
	for ; end < len(m.lines); end++ {
		if next := m.leads[end]; next != "" && !strings.EqualFold(next, email) {
			break
		}
	}
	return plaintext.Truncate(strings.Join(m.lines[start:end], "\n"), maxSaid)
}

// soleRecipient returns the recipient whom the text speaks of, if it is one.
func (m *reportMail) soleRecipient() string {
	if found, _ := m.findRecipients(); len(found) == 1 {
		return found[0].email
	}
	return ""
}

// soleAddress returns the only address in the text that may be the
// recipient's, or the only one that the original was addressed to.
func (m *reportMail) soleAddress() string {
	var found recipientSet
	for i, line := range m.lines {
		for _, email := range addressesIn(line) {
			if !m.isOther(email) {
				found.add(email, i)
			}
		}
	}
	if len(found) == 1 {
		return found[0].email
	}
	for _, header := range []string{m.original, m.tail} {
		var to []mail.Address
		mime.Fields([]byte(header), func(f mime.Field) {
			if f.Is("to") && to == nil {
				to, _ = f.Addresses(2)
			}
		})
		if len(to) == 1 {
			return plausibleAddress(to[0].Email)
		}
	}
	return ""
}

// leadingAddress returns the address that a line begins with, in a list of
// recipients: alone, before a colon, or before what is wrong with it; "" for
// none.
func leadingAddress(line string) string {
	line = strings.TrimLeft(line, " \t*>\"'•·-")
	if len(line) > 2*mime.MaxAddressBytes {
		line = line[:2*mime.MaxAddressBytes]
	}
	end := strings.IndexAny(line, " \t\"',;")
	switch open := strings.IndexByte(line, '<'); {
	case open == 0:
		end = strings.IndexByte(line, '>') + 1
	case open > 0 && (end < 0 || open < end):
		return "" // a name before it
	}
	if end <= 0 {
		end = len(line)
	}
	email := plausibleAddress(strings.TrimRight(line[:end], ":."))
	if email == "" || !strings.Contains(email[strings.LastIndexByte(email, '@'):], ".") {
		return ""
	}
	rest := strings.TrimLeft(line[end:], "\"' \t")
	switch {
	case rest == "", strings.HasSuffix(line[:end], ":"), rest[0] == ':', rest[0] == '<', rest[0] == '(', strings.HasPrefix(rest, "..."),
		strings.HasPrefix(rest, "on "), findCode(rest) > 0, findStatus(rest) != "", reasonOf(rest) != ReasonNone:
		return email
	}
	return ""
}

// recipientNames are what stands before a recipient, in lower case.
var recipientNames = []string{
	"rcpt to:", "recipient:", "recipient address:", "delivered to:", "undeliverable to", "your mail to", "your message to", "recipients:", "failed recipient:",
	"recipient was:", "undelivered to:", "failed to:", "delivery to", "rejected recipient",
}

// namedRecipient returns the address that a line names as the recipient, in
// words or as sendmail does: "550 <a@b.example>... User unknown".
func namedRecipient(line string) []string {
	lower := strings.ToLower(line)
	if len(line) > 5 && replyCode(line[:3]) > 0 && line[3:5] == " <" {
		return addressesIn(line)[:min(1, len(addressesIn(line)))]
	}
	for _, name := range recipientNames {
		if at := strings.Index(lower, name); at >= 0 && len(lower) == len(line) {
			if list := addressesIn(line[at+len(name):]); len(list) > 0 {
				return list[:1]
			}
		}
	}
	return nil
}

// refusedAddresses returns the addresses of a line that says why mail was
// refused.
func refusedAddresses(line string) []string {
	if strings.IndexByte(line, '@') < 0 || containsAny(line, []string{"mail from:", "contact", "assistance"}) {
		return nil
	}
	if findCode(line) == 0 && reasonOf(line) == ReasonNone && !containsAny(line, bounceWords) {
		return nil
	}
	return addressesIn(line)
}

// addressesIn returns what looks like an address in a line.
func addressesIn(line string) (list []string) {
	if len(line) > maxSaid {
		line = line[:maxSaid]
	}
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t<>()[]\"',;", r) }) {
		email := plausibleAddress(strings.Trim(word, ".:!?"))
		if email != "" && strings.Contains(email[strings.LastIndexByte(email, '@'):], ".") && !strings.Contains(email, "://") {
			list = append(list, strings.TrimPrefix(email, "mailto:"))
		}
	}
	return list
}
