package handlers

import (
	"strconv"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/internal/httpapi"
)

// givenTwice finds the first name that an object of a JSON document has more
// than once. What such a document says depends on who reads it (RFC 8259
// section 4), so that one reader could be shown what another does not see.
func givenTwice(doc []byte) (place string, found bool) {
	f := twiceFinder{}
	_ = f.value(jx.DecodeBytes(doc), "") // it was decoded before; only the place matters
	return f.place, f.found
}

type twiceFinder struct {
	place string
	found bool
}

// fewNames is up to how many names of an object are compared one by one.
const fewNames = 16

func (f *twiceFinder) value(d *jx.Decoder, path string) error {
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

func (f *twiceFinder) object(d *jx.Decoder, path string) error {
	var few []string
	var many map[string]bool
	return d.Obj(func(d *jx.Decoder, name string) error {
		if len(few) == fewNames && many == nil {
			many = make(map[string]bool, 2*fewNames)
			for _, n := range few {
				many[n] = true
			}
		}
		twice := many[name]
		for i := 0; i < len(few) && many == nil && !twice; i++ {
			twice = few[i] == name
		}
		if twice && !f.found {
			f.place, f.found = httpapi.JoinPath(path, name), true
		}
		if many != nil {
			many[name] = true
		} else {
			few = append(few, name)
		}
		if !holdsNames(d) {
			return d.Skip()
		}
		return f.value(d, httpapi.JoinPath(path, name))
	})
}
