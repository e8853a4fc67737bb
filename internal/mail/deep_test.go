package mail_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail/extract"
)

// TestDeepHTMLKeepsItsCode nests deeper than HTML tree builders allow.
func TestDeepHTMLKeepsItsCode(t *testing.T) {
	t.Parallel()
	got := extract.CodesAndLinks("Sign in", "", strings.Repeat("<div>", 100_000)+`<p>Your code is 735120</p><a href="https://example.com/verify/aB3dE5fG7hJ9">Verify</a>`)
	if got.OTP == nil || *got.OTP != "735120" || got.ActionLink == nil {
		t.Errorf("got the code %v and the link %v", got.OTP, got.ActionLink)
	}
}
