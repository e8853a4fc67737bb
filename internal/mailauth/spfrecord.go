package mailauth

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// spfRecord is a parsed SPF record. The whole record is parsed before
// evaluation, so an error anywhere counts (RFC 7208 section 4.6).
type spfRecord struct {
	mechanisms []mechanism
	redirect   *macroString
	exp        *macroString
}

// mechanism is one term, as in "+a:example.com/24".
type mechanism struct {
	qualifier Result
	name      string       // in lower case
	domain    *macroString // nil means the domain of the record
	network   netip.Prefix // of ip4 and ip6
	bits4     int          // a and mx: prefix length for IPv4
	bits6     int          // a and mx: prefix length for IPv6
}

// isSPFRecord reports whether a TXT record is an SPF record of version 1.
func isSPFRecord(text string) bool {
	const version = "v=spf1"
	if len(text) < len(version) || !strings.EqualFold(text[:len(version)], version) {
		return false
	}
	return len(text) == len(version) || text[len(version)] == ' '
}

// parseSPF parses a record for which isSPFRecord is true.
func parseSPF(text string) (*spfRecord, error) {
	rec := &spfRecord{}
	for term := range strings.SplitSeq(text[len("v=spf1"):], " ") {
		if term == "" {
			continue
		}
		if err := rec.addTerm(term); err != nil {
			return nil, fmt.Errorf("%q: %w", cutText(term), err)
		}
	}
	return rec, nil
}

// cutText shortens quoted third-party text.
func cutText(s string) string {
	const longest = 64
	if len(s) <= longest {
		return s
	}
	return s[:longest] + "..."
}

// addTerm parses a term. It is a modifier if it has a "=" before any ":" and
// "/", else a mechanism.
func (rec *spfRecord) addTerm(term string) error {
	if i := strings.IndexAny(term, ":/="); i >= 0 && term[i] == '=' {
		return rec.addModifier(term[:i], term[i+1:])
	}
	m, err := parseMechanism(term)
	if err != nil {
		return err
	}
	rec.mechanisms = append(rec.mechanisms, m)
	return nil
}

func (rec *spfRecord) addModifier(name, value string) error {
	if !isWord(name, "-_.") {
		return errors.New("is not the name of a modifier")
	}
	var place **macroString
	switch strings.ToLower(name) {
	case "redirect":
		place = &rec.redirect
	case "exp":
		place = &rec.exp
	default: // unknown modifiers are ignored, but must be well-formed
		_, err := parseMacro(value)
		return err
	}
	if *place != nil {
		return errors.New("stands there twice")
	}
	spec, err := parseDomainSpec(value)
	*place = &spec
	return err
}

// isWord reports whether name is a letter and then letters, digits and signs.
func isWord(name, signs string) bool {
	for i, c := range []byte(name) {
		if !isAlpha(c) && (i == 0 || !isDigit(c) && strings.IndexByte(signs, c) < 0) {
			return false
		}
	}
	return name != ""
}

var qualifiers = map[byte]Result{'+': Pass, '-': Fail, '~': SoftFail, '?': Neutral}

func parseMechanism(term string) (mechanism, error) {
	m := mechanism{qualifier: Pass, bits4: 32, bits6: 128}
	if q, ok := qualifiers[term[0]]; ok {
		m.qualifier, term = q, term[1:]
	}
	name, rest := term, ""
	if i := strings.IndexAny(term, ":/"); i >= 0 {
		name, rest = term[:i], term[i:]
	}
	m.name = strings.ToLower(name)
	var err error
	switch m.name {
	case "all":
		if rest != "" {
			err = errors.New("takes nothing")
		}
	case "include", "exists":
		if rest == "" {
			return m, errors.New("needs a domain")
		}
		err = m.readDomain(rest)
	case "ptr":
		err = m.readDomain(rest)
	case "a", "mx":
		if rest, err = m.readBits(rest); err == nil {
			err = m.readDomain(rest)
		}
	case "ip4", "ip6":
		err = m.readNetwork(rest)
	default:
		err = errors.New("is not a mechanism")
	}
	return m, err
}

// readDomain parses ":" domain-spec. Without it, the domain of the record
// applies.
func (m *mechanism) readDomain(rest string) error {
	if rest == "" {
		return nil
	}
	if rest[0] != ':' {
		return errors.New("takes no prefix length")
	}
	spec, err := parseDomainSpec(rest[1:])
	m.domain = &spec
	return err
}

// readBits parses a dual-cidr-length at the end of rest and returns the text
// before it. Other slashes belong to the domain.
func (m *mechanism) readBits(rest string) (string, error) {
	var err error
	if head, tail, ok := cutLast(rest, "//"); ok && isNumber(tail) {
		if m.bits6, err = parseBits(tail, 128); err != nil {
			return "", err
		}
		rest = head
	}
	if head, tail, ok := cutLast(rest, "/"); ok && isNumber(tail) && !strings.HasSuffix(head, "/") {
		if m.bits4, err = parseBits(tail, 32); err != nil {
			return "", err
		}
		rest = head
	}
	return rest, nil
}

// readNetwork parses ":" and an address with an optional prefix length.
func (m *mechanism) readNetwork(rest string) error {
	if rest == "" || rest[0] != ':' {
		return errors.New("needs an address")
	}
	text, length, hasLength := strings.Cut(rest[1:], "/")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Is4() != (m.name == "ip4") || addr.Zone() != "" {
		return errors.New("is not an address of that kind")
	}
	bits := addr.BitLen()
	if hasLength {
		if bits, err = parseBits(length, bits); err != nil {
			return err
		}
	}
	m.network, err = addr.Prefix(bits)
	return err
}

// parseBits parses a prefix length without leading zeros.
func parseBits(s string, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || !isNumber(s) || n > most || s != strconv.Itoa(n) {
		return 0, errors.New("has an impossible prefix length")
	}
	return n, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func isNumber(s string) bool {
	for _, c := range []byte(s) {
		if !isDigit(c) {
			return false
		}
	}
	return s != ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
