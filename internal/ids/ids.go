// Package ids is about the form of ids: a prefix that names the kind, a body in
// base32, and in new ids a check character at the end. People and models copy ids,
// so an error can say that an id is mistyped and not only unknown.
package ids

import (
	"encoding/base32"
	"fmt"
	"strings"
)

const (
	// Length is the length of a new id with its prefix.
	Length = 20
	// LongBody is the length of the bodies of older ids, and of ids that only
	// programs handle. They have no check character.
	LongBody = 26

	alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
)

// Encoding is the base32 alphabet of ULIDs in lower case: it sorts as the bytes do
// and has no letters that are easily confused.
var Encoding = base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)

// kinds are the prefixes of ids with check characters, and what they name.
var kinds = map[string]string{
	"acc_": "an account", "app_": "an application", "att_": "an attachment", "batch_": "a batch", "con_": "a contact", "dom_": "a domain",
	"drf_": "a draft", "em_": "an email", "ibx_": "an inbox", "key_": "an API key", "lst_": "an entry of a list", "msg_": "a message",
	"sup_": "a suppression", "thr_": "a thread", "tmpl_": "a template", "usr_": "a user", "wh_": "a webhook",
}

// Kind returns the prefix of an id and what it names, such as "a message". Both are empty
// for what does not look like an id.
func Kind(id string) (prefix, kind string) {
	prefix, _, _ = strings.Cut(id, "_")
	if kind = kinds[prefix+"_"]; kind == "" {
		return "", ""
	}
	return prefix + "_", kind
}

// Check returns the check character of an id without it. The characters are the
// coefficients of a polynomial over the field of 32 elements, so that any single
// wrong character and any two exchanged ones change it.
func Check(id string) byte {
	sum := 0
	for _, c := range []byte(id) {
		value := strings.IndexByte(alphabet, c)
		if value < 0 {
			value = int(c) & 31 // in a prefix
		}
		sum <<= 1 // times the primitive element
		if sum > 31 {
			sum ^= 0b100101
		}
		sum ^= value
	}
	sum <<= 1 // the check character has a place of its own
	if sum > 31 {
		sum ^= 0b100101
	}
	return alphabet[sum]
}

// Typo says what is mistyped in an id, in a sentence that begins with the id. It is
// empty for ids that may exist, and for what does not look like an id.
func Typo(id string) string {
	prefix, _ := Kind(id)
	body := id[len(prefix):]
	switch {
	case prefix == "" || len(id) > 2*Length || strings.ContainsFunc(body, notAlphanumeric), len(body) == LongBody:
		return ""
	case len(id) != Length:
		return fmt.Sprintf("%s looks mistyped: it has %d characters instead of %d", id, len(id), Length)
	case id[Length-1] != Check(id[:Length-1]) || strings.Trim(body, alphabet) != "":
		return id + " looks mistyped: its check character does not match"
	}
	return ""
}

func notAlphanumeric(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}
