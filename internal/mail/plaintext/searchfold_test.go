package plaintext

import "testing"

func TestFoldForSearch(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"lower case, no punctuation", "Hello, World! 3.14", "hello world 3 14"},
		{"accents", "Réservation ÀÉÎõü", "reservation aeiou"},
		{"letters that do not decompose", "Łódź Straße Ærø İstanbul ıĞ", "lodz strasse aero istanbul ig"},
		{"full-width and ligatures", "ＡＢＣ１２ ﬁn", "abc12 fin"},
		{"Chinese in pairs", "您的验证码是4821", "您的 的验 验证 证码 码是 4821"},
		{"the word of a query", "验证码", "验证 证码"},
		{"a single character", "码", "码"},
		{"Japanese and Latin", "東京タワーTokyo", "東京 京タ タワ ワー tokyo"},
		{"Korean stays composed", "인증번호", "인증 증번 번호"},
		{"Greek final sigma", "ΚΩΔΙΚΌΣ κωδικός", "κωδικοσ κωδικοσ"},
		{"Cyrillic", "Код ПОДТВЕРЖДЕНИЯ", "код подтверждения"},
		{"zero-width characters do not split", "ver\u200bification", "verification"},
		{"query syntax is only words", `foo" AND ( bar* -baz`, "foo and bar baz"},
		{"nothing", " ... ", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := FoldForSearch(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
