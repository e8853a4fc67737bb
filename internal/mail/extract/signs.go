package extract

// A sign is something that may hold for a candidate. It has one value or none,
// or, if bits is set, any number of values.
type sign[T any] struct {
	name   string
	doc    string
	values []string          // the names of the values 1, 2, ...
	pairs  int               // values up to this one form pairs with another sign; all if 0
	of     func(c *T) int    // the value, or 0 if the sign does not hold
	bits   func(c *T) uint32 // the values as bits: bit n is value n
}

// paired returns the values that form pairs with another sign.
func (s *sign[T]) paired() []string {
	if s.pairs > 0 {
		return s.values[:s.pairs]
	}
	return s.values
}

// flag returns a sign with the value "yes".
func flag[T any](name, doc string, holds func(c *T) bool) sign[T] {
	return sign[T]{name: name, doc: doc, values: []string{"yes"}, of: func(c *T) int {
		if holds(c) {
			return 1
		}
		return 0
	}}
}

// signTable is the list of the signs of one kind of candidates. Each value of a
// sign, and each pair of values of two crossed signs, has a number.
type signTable[T any] struct {
	list    []sign[T]
	base    []int // the number of the first value of each sign
	crosses []cross
	names   []string // by number
}

// cross is a pair of signs whose values weigh more or less together than alone.
type cross struct{ a, b, base int }

// newTable numbers the values of signs and of the pairs of signs, by name.
func newTable[T any](list []sign[T], pairs [][2]string) *signTable[T] {
	t := &signTable[T]{list: list}
	at := map[string]int{}
	for i, s := range list {
		at[s.name] = i
		t.base = append(t.base, len(t.names))
		for _, v := range s.values {
			t.names = append(t.names, s.name+"="+v)
		}
	}
	for _, p := range pairs {
		c := cross{at[p[0]], at[p[1]], len(t.names)}
		for _, a := range list[c.a].paired() {
			for _, b := range list[c.b].paired() {
				t.names = append(t.names, p[0]+"="+a+"&"+p[1]+"="+b)
			}
		}
		t.crosses = append(t.crosses, c)
	}
	return t
}

// maxSigns is more than any table has.
const maxSigns = 128

// of appends the numbers of the signs that hold for a candidate.
func (t *signTable[T]) of(c *T, numbers []uint16) []uint16 {
	var values [maxSigns]uint8
	for i := range t.list {
		s := &t.list[i]
		if s.bits != nil {
			for set, n := s.bits(c)>>1, 0; set != 0; set, n = set>>1, n+1 {
				if set&1 != 0 {
					numbers = append(numbers, uint16(t.base[i]+n))
				}
			}
			continue
		}
		if v := s.of(c); v > 0 {
			if v <= len(s.paired()) {
				values[i] = uint8(v)
			}
			numbers = append(numbers, uint16(t.base[i]+v-1))
		}
	}
	for _, x := range t.crosses {
		if a, b := int(values[x.a]), int(values[x.b]); a > 0 && b > 0 {
			numbers = append(numbers, uint16(x.base+(a-1)*len(t.list[x.b].paired())+b-1))
		}
	}
	return numbers
}
