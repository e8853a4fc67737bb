package httpapi

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/go-faster/jx"
)

const (
	// maxItems limits how many items of all arrays together are validated, and
	// maxFields how many fields of one object. Each fault takes memory, so this
	// limits what a body full of faults can take.
	maxItems  = 10_000
	maxFields = 1_000
	// maxDigits limits the numbers that are compared digit by digit.
	maxDigits = 32
)

// document is a JSON body without the items and fields beyond the limits.
type document struct {
	root    any
	order   map[string]int // the position of each field of the root
	lengths map[string]int // the true lengths of truncated arrays and objects
}

// parseDocument reads a body. It takes time and memory linear in the body.
func parseDocument(body []byte) (document, error) {
	p := documentParser{items: maxItems, doc: document{order: map[string]int{}, lengths: map[string]int{}}}
	root, err := p.value(jx.DecodeBytes(body))
	p.doc.root = root
	return p.doc, err
}

type documentParser struct {
	doc   document
	items int // how many may still be added
	path  []string
}

func (p *documentParser) value(d *jx.Decoder) (any, error) {
	switch d.Next() {
	case jx.Object:
		return p.object(d)
	case jx.Array:
		return p.array(d)
	case jx.String:
		return d.Str()
	case jx.Number:
		n, err := d.Num()
		return number(n.String()), err
	case jx.Bool:
		return d.Bool()
	default:
		return nil, d.Null()
	}
}

func (p *documentParser) object(d *jx.Decoder) (any, error) {
	fields, n := map[string]any{}, 0
	err := d.Obj(func(d *jx.Decoder, name string) error {
		if n++; len(fields) >= maxFields {
			return d.Skip()
		}
		if len(p.path) == 0 {
			p.doc.order[name] = n
		}
		p.path = append(p.path, name)
		v, err := p.value(d)
		p.path = p.path[:len(p.path)-1]
		fields[name] = v
		return err
	})
	if n > maxFields {
		p.doc.lengths[lengthKey(p.path)] = n
	}
	return fields, err
}

func (p *documentParser) array(d *jx.Decoder) (any, error) {
	list, n := []any{}, 0
	err := d.Arr(func(d *jx.Decoder) error {
		n++
		if p.items <= 0 {
			return d.Skip()
		}
		p.items--
		p.path = append(p.path, strconv.Itoa(n-1))
		v, err := p.value(d)
		p.path = p.path[:len(p.path)-1]
		list = append(list, v)
		return err
	})
	if n > len(list) {
		p.doc.lengths[lengthKey(p.path)] = n
	}
	return list, err
}

func lengthKey(path []string) string { return strings.Join(path, "\x00") }

// number returns a JSON number in a form that is cheap to compare.
func number(text string) any {
	if len(text) <= maxDigits && !strings.ContainsAny(text, "eE") {
		return json.Number(text)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return json.Number("0")
	}
	return max(-math.MaxFloat64, min(math.MaxFloat64, f))
}
