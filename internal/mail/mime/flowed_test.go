package mime

import "testing"

// TestUnflow puts the lines of RFC 3676 together again.
func TestUnflow(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		delSp    bool
		want     string
	}{
		{"lines of a paragraph", "One \ntwo \nthree.\nFour.\n", false, "One two three.\nFour.\n"},
		{"the space goes with DelSp", "これは \n長い。\n", true, "これは長い。\n"},
		{"an empty line ends a paragraph", "One \n\ntwo\n", false, "One \ntwo\n"},
		{"stuffed lines", " From me\n >no quotation\n  two spaces\n", false, "From me\n>no quotation\n two spaces\n"},
		{"quoted lines", "> one \n> two\n>> deeper \n>> too\n", false, "> one two\n>> deeper too\n"},
		{"another depth ends a paragraph", "> one \n>> two\nthree \n> four\n", false, "> one \n>> two\nthree \n> four\n"},
		{"a signature is never flowed", "Yes. \n-- \nBob\n", false, "Yes. \n-- \nBob\n"},
		{"no line end at the end", "One \ntwo", false, "One two"},
		{"a space at the very end stays", "One ", true, "One "},
		{"nothing", "", false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := unflow(tt.in, tt.delSp); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
