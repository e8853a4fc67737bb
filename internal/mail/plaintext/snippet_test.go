package plaintext

import (
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	const flag = "\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F" // England
	tests := []struct{ name, in, want string }{
		{"plain", "Hello", "Hello"},
		{"other scripts", "Grüße 字 می\u200cخواهم नमस्ते", "Grüße 字 می\u200cخواهم नमस्ते"},
		{"tags", "a\U000E0041\U000E0020\U000E007Eb\U000E0001\U000E007F", "ab"},
		{"all of the block", "a\U000E0000b\U000E0080c\U000E0FFFd\U000E1000", "abcd\U000E1000"},
		{"flags", "x" + flag + flag + "y", "x\U0001F3F4\U0001F3F4y"},
		{"a flag with too much", "x\U0001F3F4" + strings.Repeat("\U000E0067", 20) + "\U000E007Fy", "x\U0001F3F4y"},
		{"fillers", "a\u115fb\u1160c\u3164d\uffa0e\u180ef", "abcdef"},
		{"emoji and one selector", "1\ufe0f\u20e3 ❤\ufe0f 葛\U000E0100", "1\ufe0f\u20e3 ❤\ufe0f 葛"},
		{"runs of selectors", "😀\ufe0f\ufe0e\ufe00\U000E0100\ufe01 x\ufe00\u180b\ufe01y", "😀\ufe0f x\ufe00y"},
		{"selectors after nothing", "\ufe00\ufe01a", "a"},
		{"only tags", strings.Repeat("\U000E0041", 100), ""},
		{"broken text", "a\xff\U000E0041b", "a\xffb"},
	}
	for _, tt := range tests {
		if got := Visible(tt.in); got != tt.want {
			t.Errorf("%s: got %+q, want %+q", tt.name, got, tt.want)
		}
	}
}

func TestSnippet(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"one line", "Hello\r\n\r\n  world\t!", "Hello world !"},
		{"invisible filler", "Hi \u200c \u034f \u200b\u00ad there\ufeff", "Hi there"},
		{"hidden text and a flag", "Hi\U000E0041 \U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", "Hi \U0001F3F4"},
		{"nothing", " \r\n", ""},
		{"200 characters", strings.Repeat("ü", 300), strings.Repeat("ü", 200)},
		{"no space at the end", strings.Repeat("x", 199) + " y", strings.Repeat("x", 199)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Snippet(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
