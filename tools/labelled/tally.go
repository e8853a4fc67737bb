package labelled

import (
	"fmt"
	"slices"

	"github.com/postroom/postroom/internal/mail"
)

// Tally counts what was read right.
type Tally struct {
	Messages, Exact           int // Exact: the codes are those of the label
	Found, Right, Wanted      int // codes
	OTPs, OTPRight, OTPWrong  int
	Codeless, Clean           int // messages without a code, and those in which none was found
	Links, LinkRight, NoLinks int // messages with an action link; right; without one but one was found
}

// Add counts one message and returns what was read wrong.
func (t *Tally) Add(m *Message, got mail.Extraction) (misses []string) {
	miss := func(format string, args ...any) { misses = append(misses, fmt.Sprintf(format, args...)) }
	t.Messages++
	open := slices.Clone(m.Codes)
	exact := true
	for _, code := range got.Codes {
		if m.IsTolerated(code) {
			continue
		}
		t.Found++
		i := slices.IndexFunc(open, func(want string) bool { return m.Is(want, code) })
		if i < 0 {
			exact = false
			miss("false code %q", code)
			continue
		}
		open = slices.Delete(open, i, i+1)
		t.Right++
	}
	t.Wanted += len(m.Codes)
	for _, code := range open {
		exact = false
		miss("code %q not found", code)
	}
	if exact {
		t.Exact++
	}
	if len(m.Codes) == 0 {
		t.Codeless++
		if exact {
			t.Clean++
		}
	}
	if m.OTP != "" {
		t.OTPs++
	}
	switch {
	case got.OTP != nil && m.Is(m.OTP, *got.OTP):
		t.OTPRight++
	case got.OTP != nil && !m.IsTolerated(*got.OTP):
		t.OTPWrong++
		miss("wrong otp %q", *got.OTP)
	case m.OTP != "":
		miss("no otp, want %q", m.OTP)
	}
	return append(misses, t.addLink(m, got)...)
}

func (t *Tally) addLink(m *Message, got mail.Extraction) []string {
	link := ""
	if got.ActionLink != nil {
		link = *got.ActionLink
	}
	right := slices.Contains(m.Actions, link)
	switch {
	case len(m.Actions) > 0:
		t.Links++
		if right {
			t.LinkRight++
			return nil
		}
	case link == "" || slices.Contains(m.ActionOK, link):
		return nil
	default:
		t.NoLinks++
	}
	return []string{fmt.Sprintf("action link %q, want %q", link, m.Actions)}
}

// Share returns part of whole, or 1 if whole is 0.
func Share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

func (t *Tally) String() string {
	return fmt.Sprintf("%5d  P %.3f  R %.3f  all right %.3f  otp %d of %d, wrong %d  none %.3f (%d of %d)  link %.3f (%d of %d), false %d",
		t.Messages, Share(t.Right, t.Found), Share(t.Right, t.Wanted), Share(t.Exact, t.Messages), t.OTPRight, t.OTPs, t.OTPWrong,
		Share(t.Clean, t.Codeless), t.Clean, t.Codeless, Share(t.LinkRight, t.Links), t.LinkRight, t.Links, t.NoLinks)
}
