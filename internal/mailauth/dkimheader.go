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

// canonicalization reads c=: that of the header, and that of the body.
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

// fieldIndex finds the fields of a header by their names in lower case, in the
// order in which they stand there.
type fieldIndex map[string][]mime.Field

func indexFields(fields []mime.Field) fieldIndex {
	index := fieldIndex{}
	for _, f := range fields {
		name := strings.ToLower(string(f.Name))
		index[name] = append(index[name], f)
	}
	return index
}

// hash writes the fields that h= names to w: of several with a name the last
// one first, and nothing when none is left (section 5.4.2). So no field is
// written twice, however long the list is. It reports whether all the From
// fields are among them.
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

// hashOwnField writes the signature itself, without its value and line end.
func hashOwnField(w io.Writer, f mime.Field, canon form) {
	var out bytes.Buffer
	writeField(&out, []byte(withoutValue(string(f.Raw))), canon)
	_, _ = w.Write(bytes.TrimRight(out.Bytes(), "\r\n")) // a hash takes everything
}

// writeField writes a field in canonical form. w is a hash or a buffer, which
// take everything.
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
