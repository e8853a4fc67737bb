package pdftext

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
)

// font decodes the strings that a font shows.
type font struct {
	width int               // bytes of a character
	to    map[uint32]string // nil: the file does not say
	// advance is how far each character moves, and other the rest, in thousandths of
	// the size of the font. nil: the file does not say.
	advance map[uint32]float64
	other   float64
}

// font returns the font of a page by its value in the resources.
func (f *file) font(v any) *font {
	r, shared := v.(ref)
	if shared && f.fonts[r] != nil {
		return f.fonts[r]
	}
	d := f.dict(v)
	t := &font{width: 1}
	if d["Subtype"] == name("Type0") {
		t.width = 2
	}
	if s, ok := f.resolve(d["ToUnicode"]).(stream); ok {
		f.readMap(t, f.inflate(s))
	}
	f.readWidths(t, d)
	if shared {
		f.fonts[r] = t
	}
	return t
}

// readWidths reads how far the characters of a font move.
func (f *file) readWidths(t *font, d dict) {
	if list, ok := f.resolve(d["Widths"]).([]any); ok {
		first, _ := f.resolve(d["FirstChar"]).(float64)
		t.advance = map[uint32]float64{}
		f.readRun(t, first, list)
		return
	}
	below, _ := f.resolve(d["DescendantFonts"]).([]any)
	if len(below) == 0 {
		return
	}
	d = f.dict(below[0])
	list, ok := f.resolve(d["W"]).([]any)
	if !ok {
		return
	}
	t.advance, t.other = map[uint32]float64{}, 1000
	if w, ok := f.resolve(d["DW"]).(float64); ok {
		t.other = w
	}
	for i := 0; i+1 < len(list) && f.mapped > 0; f.mapped-- {
		from, _ := list[i].(float64)
		switch to := f.resolve(list[i+1]).(type) {
		case []any: // each character from here on
			f.readRun(t, from, to)
			i += 2
		case float64: // all characters up to this one
			if i+2 < len(list) {
				w, _ := list[i+2].(float64)
				for c := max(0, from); c <= to && c <= math.MaxUint16 && f.mapped > 0; c++ {
					f.mapped--
					t.advance[uint32(c)] = w
				}
			}
			i += 3
		default:
			i += 2
		}
	}
}

// readRun reads the widths of characters that follow each other.
func (f *file) readRun(t *font, first float64, widths []any) {
	for i, v := range widths {
		if f.mapped--; f.mapped < 0 {
			return
		}
		if c := first + float64(i); c >= 0 && c <= math.MaxUint16 {
			t.advance[uint32(c)], _ = v.(float64)
		}
	}
}

// moves returns how far a string moves, in thousandths of the size of the font.
func (t *font) moves(s string) (all float64) {
	for i := 0; i+t.width <= len(s); i += t.width {
		if w, ok := t.advance[code(s[i:i+t.width])]; ok {
			all += w
		} else {
			all += t.other
		}
	}
	return all
}

// readMap reads the table of a font from its codes to Unicode.
func (f *file) readMap(t *font, b []byte) {
	t.to = map[uint32]string{}
	l := &lexer{b: b, left: &f.values}
	var args []string
	for l.i < len(l.b) {
		v, ok := l.value(0)
		if !ok {
			l.i++
			continue
		}
		switch v := v.(type) {
		case string:
			args = append(args, v)
		case []any: // the results of a range, one by one
			if n := len(args); n >= 2 {
				for k, one := range v {
					if s, ok := one.(string); ok && f.mapped > 0 {
						f.mapped--
						t.to[code(args[n-2])+uint32(k)] = utf16Text(s) //nolint:gosec // the array is short
					}
				}
				args = args[:n-2]
			}
		case keyword:
			switch v {
			case "endcodespacerange":
				if len(args) > 0 {
					t.width = min(max(len(args[0]), 1), 4)
				}
			case "endbfchar":
				for i := 0; i+1 < len(args) && f.mapped > 0; i += 2 {
					f.mapped--
					t.to[code(args[i])] = utf16Text(args[i+1])
				}
			case "endbfrange":
				for i := 0; i+2 < len(args); i += 3 {
					f.mapRange(t, code(args[i]), code(args[i+1]), args[i+2])
				}
			}
			args = args[:0]
		}
	}
}

// mapRange maps the codes of a range to characters that follow each other.
func (f *file) mapRange(t *font, from, to uint32, first string) {
	start := []rune(utf16Text(first))
	if len(start) == 0 {
		return
	}
	for c := uint64(from); c <= uint64(to) && f.mapped > 0; c++ {
		f.mapped -= len(start)
		t.to[uint32(c)] = string(start) //nolint:gosec // at most to
		start[len(start)-1]++
	}
}

// code is the number that a string of bytes stands for.
func code(s string) (n uint32) {
	for i := range len(s) {
		n = n<<8 | uint32(s[i])
	}
	return n
}

// utf16Text decodes UTF-16 with the higher byte first.
func utf16Text(s string) string {
	var units []uint16
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return string(utf16.Decode(units))
}

// decode returns the text of a string, up to left bytes, and takes it off left. Codes
// that the font does not explain are left out, unless they are single bytes.
func (t *font) decode(s string, left *int) string {
	var out []byte
	for i := 0; i+t.width <= len(s) && len(out) < *left; i += t.width {
		if text, ok := t.to[code(s[i:i+t.width])]; ok {
			out = append(out, text...)
		} else if t.width == 1 {
			out = append(out, string(charmap.Windows1252.DecodeByte(s[i]))...)
		}
	}
	*left -= len(out)
	return string(out)
}

// maxOperands is how many operands of an instruction are kept.
const maxOperands = 8

// wordGap is from how much space between two strings they are two words, in
// thousandths of the size of the font.
const wordGap = 200

// line is where the text of a page is written.
type line struct {
	out      *writer
	left     *int // bytes that may still be written
	font     *font
	size     float64
	x, y     float64 // of the last matrix
	scale    float64 // of the last matrix
	advanced float64 // since the last move, in units of the text
}

// shows writes a string.
func (n *line) shows(v any) {
	if s, ok := v.(string); ok {
		n.out.write(n.font.decode(s, n.left))
		n.advanced += n.font.moves(s) * n.size / 1000
	}
}

// moved notes that the next string begins this far from the last move. It is another
// word if there is a gap, or if the file does not say how wide the last one was.
func (n *line) moved(by float64) {
	if n.font.advance == nil || math.Abs(by-n.advanced) > wordGap*n.size/1000 {
		n.out.space = true
	}
	n.advanced = 0
}

// array writes strings with the space between them.
func (n *line) array(v any) {
	list, _ := v.([]any)
	for _, v := range list {
		if gap, ok := v.(float64); ok {
			n.advanced -= gap * n.size / 1000
			if -gap > wordGap {
				n.out.space = true
			}
		}
		n.shows(v)
	}
}

// matrix moves to where a matrix says.
func (n *line) matrix(scale, x, y float64) {
	if math.Abs(y-n.y) > 1 {
		n.out.line()
		n.advanced = 0
	} else {
		n.moved((x - n.x) / cmp.Or(n.scale, 1))
	}
	n.x, n.y, n.scale = x, y, scale
}

// show follows the instructions of a page, or of a form within it, and writes the text
// that they show.
func (f *file) show(ctx context.Context, out *writer, b []byte, resources dict, forms int) {
	if ctx.Err() != nil {
		return
	}
	fonts, objects := f.dict(resources["Font"]), f.dict(resources["XObject"])
	at := &line{out: out, left: &f.bytes, font: &font{width: 1}, y: math.Inf(1)}
	var operands []any
	last := func(fromEnd int) any {
		if i := len(operands) - fromEnd; i >= 0 {
			return operands[i]
		}
		return nil
	}
	number := func(fromEnd int) float64 {
		n, _ := last(fromEnd).(float64)
		return n
	}
	l := &lexer{b: b, left: &f.values}
	for l.i < len(l.b) && !out.full() {
		v, ok := l.value(0)
		if !ok {
			l.i++
			continue
		}
		op, ok := v.(keyword)
		if !ok {
			if len(operands) == maxOperands {
				copy(operands, operands[1:])
				operands = operands[:maxOperands-1]
			}
			operands = append(operands, v)
			continue
		}
		switch op {
		case "Tf":
			if key, ok := last(2).(name); ok {
				at.font, at.size = f.font(fonts[key]), number(1)
			}
		case "Td", "TD":
			if math.Abs(number(1)) > 0.01 {
				out.line()
				at.advanced = 0
			} else {
				at.moved(number(2))
			}
		case "Tm":
			at.matrix(number(6), number(2), number(1))
		case "T*":
			out.line()
		case "'", `"`:
			out.line()
			at.shows(last(1))
		case "Tj":
			at.shows(last(1))
		case "TJ":
			at.array(last(1))
		case "BI": // an image between the instructions
			if k := bytes.Index(l.b[l.i:], []byte("EI")); k >= 0 {
				l.i += k + 2
			} else {
				l.i = len(l.b)
			}
		case "Do":
			key, _ := last(1).(name)
			if s, ok := f.resolve(objects[key]).(stream); ok && s.dict["Subtype"] == name("Form") && forms < maxForms {
				own := f.dict(s.dict["Resources"])
				if own == nil {
					own = resources
				}
				f.show(ctx, out, f.inflate(s), own, forms+1)
			}
		}
		operands = operands[:0]
	}
}
