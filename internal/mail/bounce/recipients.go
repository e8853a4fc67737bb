package bounce

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// foundRecipient is a failed address and the line at which its reason starts.
type foundRecipient struct {
	email string
	line  int
}

// findRecipients returns the addresses that the text reports on: those in
// X-Failed-Recipients, else those that begin a line, else those named as
// recipient. If a server wrote the text, they are else those on a line with
// an error, else the only address. It leaves out the sender of the original
// unless no other address remains. whole reports that the reason may be anywhere
// in the text.
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
	var servers recipientSet // addresses of the sender and of servers, the last resort
	inList := func(n int, line string) []string {
		if m.leads[n] == "" {
			return onlyAddresses(line)
		}
		return m.leads[n : n+1]
	}
	looks := []func(n int, line string) []string{inList, namedRecipient}
	if m.byServer() {
		looks = append(looks, refusedAddresses)
	}
	for i, look := range looks {
		for n, line := range m.lines {
			for _, email := range look(n, line) {
				if email != "" {
					found.add(email, n)
				}
			}
		}
		if others := m.withoutOthers(found); len(others) > 0 {
			return others, i > 0
		}
		if len(servers) == 0 {
			servers, whole = found, i > 0
		}
		found = nil
	}
	if len(servers) > 0 {
		if !m.showsFailure() { // a notice about the mailbox that it went to
			servers = slices.DeleteFunc(servers, func(f foundRecipient) bool { return m.isAddressee(f.email) })
		}
		return servers, whole
	}
	if email := m.soleAddress(); email != "" && m.byServer() {
		return recipientSet{{email, m.lineOf(email)}}, true
	}
	return nil, false
}

// recipientSet is a list of at most maxReported unique addresses.
type recipientSet []foundRecipient

func (s *recipientSet) add(email string, line int) {
	known := func(f foundRecipient) bool { return strings.EqualFold(f.email, email) }
	if len(*s) < maxReported && !slices.ContainsFunc(*s, known) {
		*s = append(*s, foundRecipient{email, line})
	}
}

// withoutOthers removes the original's sender and the reporting server.
func (m *reportMail) withoutOthers(found recipientSet) recipientSet {
	return slices.DeleteFunc(slices.Clone(found), func(f foundRecipient) bool { return m.isOther(f.email) })
}

// isOther reports whether an address belongs to the original's sender or to a
// server.
func (m *reportMail) isOther(email string) bool {
	local := localPart(email)
	return strings.EqualFold(email, m.from.Email) || local == "postmaster" || local == "mailer-daemon" || local == "abuse" || local == "support" ||
		strings.HasSuffix(local, "-owner") || strings.HasSuffix(local, "-request") || strings.HasSuffix(local, "-bounces") ||
		m.isAddressee(email)
}

// isAddressee reports whether the message went to an address.
func (m *reportMail) isAddressee(email string) bool {
	return slices.ContainsFunc(m.to, func(a mail.Address) bool { return strings.EqualFold(a.Email, email) })
}

// lineOf returns the index of the first line that contains an address, or 0.
func (m *reportMail) lineOf(email string) int {
	email = strings.ToLower(email)
	at := slices.IndexFunc(m.lines, func(line string) bool { return strings.Contains(strings.ToLower(line), email) })
	return max(at, 0)
}

// saidOf returns the text about a recipient of a delivery status.
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

// saidFrom returns the text about an address from line start up to the next
// recipient, or "" if start is after the last line.
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

// soleRecipient returns the recipient in the text if there is only one, or "".
func (m *reportMail) soleRecipient() string {
	if found, _ := m.findRecipients(); len(found) == 1 {
		return found[0].email
	}
	return ""
}

// soleAddress returns the only possible recipient in the text, else the only To
// address of the original, or "".
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

// leadingAddress returns the address at the start of a line in a list of
// recipients: alone, before a colon or before an error; or "".
func leadingAddress(line string) string {
	line = strings.TrimLeft(line, " \t*>\"'•·-")
	if inside, after, ok := strings.Cut(line, "]"); ok && strings.HasPrefix(line, "[") && strings.IndexByte(inside, '@') > 0 {
		line = inside[1:] + " " + after // "[a@b.example]"
	}
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

// onlyAddresses returns the addresses of a line that consists of two or more.
func onlyAddresses(line string) []string {
	if strings.Count(line, "@") < 2 {
		return nil
	}
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t,;", r) })
	if list := addressesIn(line); len(list) == len(words) {
		return list
	}
	return nil
}

// namedRecipient returns the address that a line names as recipient, in words
// or as sendmail does: "550 <a@b.example>... User unknown".
func namedRecipient(_ int, line string) []string {
	lower := strings.ToLower(line)
	if len(line) > 5 && replyCode(line[:3]) > 0 && line[3:5] == " <" {
		return addressesIn(line)[:min(1, len(addressesIn(line)))]
	}
	for _, name := range phrases().recipient {
		if at := strings.Index(lower, name); at >= 0 && len(lower) == len(line) {
			if list := addressesIn(line[at+len(name):]); len(list) > 0 {
				return list[:1]
			}
		}
	}
	return nil
}

// refusedAddresses returns the addresses on a line that reports an error.
func refusedAddresses(_ int, line string) []string {
	if strings.IndexByte(line, '@') < 0 || containsAny(line, []string{"mail from:", "contact", "assistance"}) {
		return nil
	}
	if findCode(line) == 0 && reasonOf(line) == ReasonNone && !containsAny(line, phrases().text) {
		return nil
	}
	return addressesIn(line)
}

// cutScheme removes the "mailto:" or "SMTP:" before an address.
func cutScheme(email string) string {
	for _, scheme := range []string{"mailto:", "smtp:"} {
		if len(email) > len(scheme) && strings.EqualFold(email[:len(scheme)], scheme) {
			return email[len(scheme):]
		}
	}
	return email
}

// addressesIn returns the addresses in a line.
func addressesIn(line string) (list []string) {
	if len(line) > maxSaid {
		line = line[:maxSaid]
	}
	for _, word := range strings.FieldsFunc(line, func(r rune) bool {
		return strings.ContainsRune(" \t<>()[]\"',;：；，、。（）「」『』【】《》＜＞", r)
	}) {
		email := plausibleAddress(strings.Trim(word, ".:!?"))
		if email != "" && strings.Contains(email[strings.LastIndexByte(email, '@'):], ".") && !strings.Contains(email, "://") {
			list = append(list, cutScheme(email))
		}
	}
	return list
}
