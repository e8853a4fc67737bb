package smtp

import "testing"

func TestSplitAddress(t *testing.T) {
	t.Parallel()
	tests := []struct{ rcpt, local, tag, domain string }{
		{"bot@in.example", "bot", "", "in.example"},
		{"Bot@IN.Example", "bot", "", "in.example"},
		{"bot+Sign-Up@in.example", "bot", "sign-up", "in.example"},
		{"bot+a+b@in.example", "bot", "a+b", "in.example"},
		{"bot+@in.example", "bot", "", "in.example"},
		{`"u@out.example"@in.example`, "u@out.example", "", "in.example"},
		{`"b\ot+x"@in.example`, "bot", "x", "in.example"},
		{"bot@bücher.example", "bot", "", "xn--bcher-kva.example"},
		{"bot", "bot", "", ""},
		{"", "", "", ""},
	}
	for _, tt := range tests {
		local, tag, domain := SplitAddress(tt.rcpt)
		got := ""
		if tag != nil {
			got = *tag
		}
		if local != tt.local || got != tt.tag || domain != tt.domain || (tag == nil) != (tt.tag == "") {
			t.Errorf("splitAddress(%q) = %q, %q, %q, want %q, %q, %q", tt.rcpt, local, got, domain, tt.local, tt.tag, tt.domain)
		}
	}
}
