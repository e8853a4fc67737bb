package httpapi

import (
	"strconv"

	"github.com/go-faster/jx"
)

// DuplicateField returns the path of the first duplicate field in an object of
// a JSON document. Parsers disagree about duplicates (RFC 8259 section 4), so
// one may miss what another sees. The document must be valid.
func DuplicateField(doc []byte) (path string, found bool) {
	f := duplicateFinder{}
	_ = f.value(jx.DecodeBytes(doc), "") // the document is valid
	return f.path, f.found
}

type duplicateFinder struct {
	path  string
	found bool
}

// fewNames is the largest number of names that an object checks without a map.
const fewNames = 16

func (f *duplicateFinder) value(d *jx.Decoder, path string) error {
	switch d.Next() {
	case jx.Object:
		return f.object(d, path)
	case jx.Array:
		i := -1
		return d.Arr(func(d *jx.Decoder) error {
			if i++; !holdsNames(d) {
				return d.Skip()
			}
			return f.value(d, path+"["+strconv.Itoa(i)+"]")
		})
	default:
		return d.Skip()
	}
}

func holdsNames(d *jx.Decoder) bool {
	t := d.Next()
	return t == jx.Object || t == jx.Array
}

func (f *duplicateFinder) object(d *jx.Decoder, path string) error {
	var few []string
	var many map[string]bool
	return d.Obj(func(d *jx.Decoder, name string) error {
		if len(few) == fewNames && many == nil {
			many = make(map[string]bool, 2*fewNames)
			for _, n := range few {
				many[n] = true
			}
		}
		duplicate := many[name]
		for i := 0; i < len(few) && many == nil && !duplicate; i++ {
			duplicate = few[i] == name
		}
		if duplicate && !f.found {
			f.path, f.found = JoinPath(path, name), true
		}
		if many != nil {
			many[name] = true
		} else {
			few = append(few, name)
		}
		if !holdsNames(d) {
			return d.Skip()
		}
		return f.value(d, JoinPath(path, name))
	})
}
