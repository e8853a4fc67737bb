package reply

import (
	"testing"
)

func TestNormalizeSubject(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"none", "Lunch", "Lunch"},
		{"one", "Re: Lunch", "Lunch"},
		{"many, in several languages", "AW: Re: FWD: sv: WG: TR: RV: Lunch", "Lunch"},
		{"counters", "RE(2): Re[3]: re^4: Lunch", "Lunch"},
		{"without space", "Re:Lunch", "Lunch"},
		{"a space before the colon", "RE : Lunch", "Lunch"},
		{"a full-width colon", "回复：Lunch", "Lunch"},
		{"white space is folded", "  Re:\t two \n words ", "two words"},
		{"marks of the world", "Odp: YNT: İLT: Vá: ΑΠ: Ответ: השב: رد: 返信: 회신: Antw: SV: VS: Réf : Lunch", "Lunch"},
		{"counters of the world", "AW[2]: 回复(3): Lunch", "Lunch"},
		{"a word that only looks like a mark", "Release: 1.0", "Release: 1.0"},
		{"a word before a mark", "Foo Re: bar", "Foo Re: bar"},
		{"nothing else", "Re:", ""},
		{"letter case stays", "re: LUNCH", "LUNCH"},
		{"a list tag stays", "Re: [dev] Lunch", "[dev] Lunch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := NormalizeSubject(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestReplyAndForwardSubject(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, reply, forward string }{
		{"Lunch", "Re: Lunch", "Fwd: Lunch"},
		{"Re: Lunch", "Re: Lunch", "Fwd: Re: Lunch"},
		{"RE: Lunch", "RE: Lunch", "Fwd: RE: Lunch"},
		{"Fwd: Lunch", "Re: Fwd: Lunch", "Fwd: Lunch"},
		{"", "Re:", "Fwd:"},
		{" a\r\nb ", "Re: a b", "Fwd: a b"},
	}
	for _, tt := range tests {
		if got := ReplySubject(tt.in); got != tt.reply {
			t.Errorf("reply to %q: got %q, want %q", tt.in, got, tt.reply)
		}
		if got := ForwardSubject(tt.in); got != tt.forward {
			t.Errorf("forward of %q: got %q, want %q", tt.in, got, tt.forward)
		}
	}
}
