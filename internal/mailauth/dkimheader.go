package mailauth

import (
	"bytes"
	"io"
	"strings"

	"github.com/postroom/postroom/internal/mail/mime"
)

// form is a canonicalization (RFC 6376 section 3.4).
type form int

const (
	unknownForm form = iota
	simpleForm
	relaxedForm
)

// canonicalization parses c= into the forms of the header and the body.
func canonicalization(c string) (header, body form) {
	first, second, _ := strings.Cut(strings.ToLower(c), "/")
	return formOf(first), formOf(second)
}

func formOf(name string) form {
	switch name {
	case "", "simple":
		return simpleForm
	case "relaxed":
		return relaxedForm
	}
	return unknownForm
}

// fieldIndex maps lower-case names to header fields, in header order.
type fieldIndex map[string][]mime.Field

func indexFields(fields []mime.Field) fieldIndex {
	index := fieldIndex{}
	for _, f := range fields {
		name := strings.ToLower(string(f.Name))
		index[name] = append(index[name], f)
	}
	return index
}

// hash writes the fields that h= names to w. It takes fields of the same name
// from the bottom of the header up and ignores further names (RFC 6376 section
// 5.4.2), so each field is written at most once. It reports whether all From
// fields are signed.
func (x fieldIndex) hash(w io.Writer, names []string, f form) (fromSigned bool) {
	taken := map[string]int{}
	for _, name := range names {
		name = strings.ToLower(name)
		fields := x[name]
		n := taken[name]
		if n == len(fields) {
			continue
		}
		taken[name] = n + 1
		writeField(w, fields[len(fields)-1-n].Raw, f)
	}
	return taken["from"] == len(x["from"])
}

// hashOwnField writes the signature field without the value of b= and without
// its line ending.
func hashOwnField(w io.Writer, f mime.Field, canon form) {
	var out bytes.Buffer
	writeField(&out, []byte(withoutValue(string(f.Raw))), canon)
	_, _ = w.Write(bytes.TrimRight(out.Bytes(), "\r\n")) // a hash never returns an error
}

// writeField writes a field in canonical form. w must be a hash or a buffer;
// their writes do not fail.
func writeField(w io.Writer, raw []byte, f form) {
	if f == simpleForm {
		_, _ = w.Write(raw)
		if !bytes.HasSuffix(raw, []byte("\n")) {
			_, _ = io.WriteString(w, "\r\n")
		}
		return
	}
	name, value, _ := bytes.Cut(raw, []byte(":"))
	out := make([]byte, 0, len(raw)+3)
	out = append(out, bytes.ToLower(bytes.TrimRight(name, " \t"))...)
	out = append(out, ':')
	begin := len(out)
	space := false
	for _, c := range value {
		switch c {
		case '\r', '\n':
		case ' ', '\t':
			space = len(out) > begin
		default:
			if space {
				out = append(out, ' ')
				space = false
			}
			out = append(out, c)
		}
	}
	_, _ = w.Write(append(out, "\r\n"...))
}
