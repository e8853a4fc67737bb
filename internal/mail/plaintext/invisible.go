package plaintext

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// The kinds of invisible characters.
const (
	KindTags      = "tags"
	KindSelectors = "variation_selectors"
	KindZeroWidth = "zero_width"
	KindFillers   = "fillers"
	KindDirection = "direction"
)

const (
	// fewSelectors is how many variation selectors without a use are no message.
	fewSelectors = 4
	// fewBits is how many zero-width characters are no message, and maxPeriod after how
	// many they repeat in the filler of a preview line.
	fewBits, maxPeriod = 16, 4
	// keptBits is how many zero-width characters are compared.
	keptBits = 256
)

// Invisible counts the characters of a text that have no visible form and no use.
type Invisible struct {
	tags, selectors, zeroWidth, fillers, direction int

	last     rune // the last visible character
	flag     bool // a flag is being written in tags
	selected bool // last has its selector
	joins    bool // last joins: of a script with joiners, or an emoji
	bits     []rune
}

// Add counts the characters of the next piece of a text.
func (c *Invisible) Add(s string) {
	if IsASCII(s) {
		if s != "" {
			c.see(rune(s[len(s)-1]))
		}
		return
	}
	for _, r := range s {
		switch {
		case r < 0xad:
			c.see(r)
		case isPlane14(r) && !isIdeographicSelector(r):
			if !c.flag {
				c.tags++
			}
		case isSelector(r) || isIdeographicSelector(r):
			if c.selected || c.last < 0x80 && !c.takesSelector() {
				c.selectors++
			}
			c.selected = true
		case isFiller(r):
			c.fillers++
		case 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
			c.direction++
		case isBit(r):
			if c.joins && (r == 0x200c || r == 0x200d) {
				c.joins = false // one is enough
				continue
			}
			if c.zeroWidth++; len(c.bits) < keptBits {
				c.bits = append(c.bits, r)
			}
		default:
			c.see(r)
		}
	}
}

func (c *Invisible) see(r rune) {
	c.last, c.selected, c.flag, c.joins = r, false, r == 0x1f3f4, joins(r)
}

// takesSelector reports whether the last character may be followed by a selector, as the
// digits of keycaps.
func (c *Invisible) takesSelector() bool {
	return c.last == '#' || c.last == '*' || '0' <= c.last && c.last <= '9'
}

// joins reports whether a joiner may follow r.
func joins(r rune) bool {
	return r >= 0x600 && r < 0x1100 && (unicode.IsLetter(r) || unicode.IsMark(r)) || r >= 0x2190 && unicode.In(r, unicode.So, unicode.Sk)
}

// isBit reports whether r is a zero-width character that can stand for a bit.
func isBit(r rune) bool {
	return 0x200b <= r && r <= 0x200d || 0x2060 <= r && r <= 0x2065 || r == 0xfeff
}

func isIdeographicSelector(r rune) bool { return 0xe0100 <= r && r <= 0xe01ef }

// Count returns how many there are.
func (c *Invisible) Count() int {
	return c.tags + c.selectors + c.zeroWidth + c.fillers + c.direction
}

// Plus returns the sum of two counts.
func (c Invisible) Plus(o Invisible) Invisible {
	c.tags, c.selectors, c.zeroWidth = c.tags+o.tags, c.selectors+o.selectors, c.zeroWidth+o.zeroWidth
	c.fillers, c.direction = c.fillers+o.fillers, c.direction+o.direction
	return c
}

// Kinds returns what kinds there are.
func (c *Invisible) Kinds() (kinds []string) {
	for _, k := range []struct {
		n    int
		name string
	}{{c.tags, KindTags}, {c.selectors, KindSelectors}, {c.zeroWidth, KindZeroWidth}, {c.fillers, KindFillers}, {c.direction, KindDirection}} {
		if k.n > 0 {
			kinds = append(kinds, k.name)
		}
	}
	return kinds
}

// Hides reports whether the characters can carry a text: tags, more than a few variation
// selectors, or zero-width characters of two kinds in an order that does not repeat.
func (c *Invisible) Hides() bool {
	return c.tags > 0 || c.selectors >= fewSelectors || len(c.bits) >= fewBits && !c.periodic()
}

func (c *Invisible) periodic() bool {
	for period := 1; period <= maxPeriod; period++ {
		if slices.Equal(c.bits[period:], c.bits[:len(c.bits)-period]) {
			return true
		}
	}
	return false
}

// dropsBit reports whether Visible drops the zero-width character r after the text before.
func dropsBit(r rune, before string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	return isBit(r) && (r != 0x200c && r != 0x200d || !joins(last) && last != 0xfe0f)
}
