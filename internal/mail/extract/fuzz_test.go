package extract

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mailtest"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/reply"
)

// fuzzSeeds are subjects and bodies with codes and links of many kinds.
var fuzzSeeds = [][2]string{
	{"Your code", "Your code is 482 913.\n\nhttps://a.example/verify?t=1"}, {"コード", "認証コード：７３５１２０"}, {"Re: code", "Try 118203.\n\nOn Thu, Ann wrote:\n> 482913"},
	{"Order 77120", "Total: $48.20\nCode\tAC-44170\nTel. +44 7700 900318"}, {"2 %", "Use K7QX-93MB\n\n7\n3\n5\n1\n\n-- \nExample Ltd, 1 Road, Town"},
}

// FuzzExtract looks for codes and links in anything (M13).
func FuzzExtract(f *testing.F) {
	mailtest.EachMessage(f, "../testdata/mail", func(raw []byte) {
		if m, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits()); err == nil {
			f.Add(m.Subject, m.Text, m.HTML)
		}
	})
	for _, c := range fuzzSeeds {
		f.Add(c[0], c[1], "")
		f.Add(c[0], "", c[1])
	}
	f.Add("Your code", "7 3 5 1 2 0 https://a.example/(x)", "<a href=https://b.example>Verify</a> 735-120")
	f.Fuzz(func(t *testing.T, subject, text, html string) {
		got := CodesAndLinks(subject, text, html)
		if again := CodesAndLinks(subject, text, html); !reflect.DeepEqual(got, again) {
			t.Errorf("not the same twice: %s, %s", show(got), show(again))
		}
		if len(got.Codes) > maxCodes || len(got.Links) > mail.DefaultLimits().Links {
			t.Errorf("%d codes and %d links", len(got.Codes), len(got.Links))
		}
		for _, link := range got.Links {
			if !plaintext.IsWebLink(link) || strings.ContainsAny(link, " \t\r\n") {
				t.Errorf("link %q", link)
			}
		}
		for _, code := range got.Codes {
			if len(code) < minDigits || len(code) > 60 || strings.Trim(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") != "" {
				t.Errorf("code %q", code)
			}
		}
		if got.OTP != nil && (len(got.Codes) == 0 || *got.OTP != got.Codes[0]) {
			t.Errorf("otp %q of %q", *got.OTP, got.Codes)
		}
		if got.ActionLink != nil && (len(got.Links) == 0 || *got.ActionLink != got.Links[0]) {
			t.Errorf("action link %q of %q", *got.ActionLink, got.Links)
		}
		if utf8.ValidString(text) {
			reply := reply.Text(strings.ReplaceAll(text, "\x00", ""), nil)
			mailtest.CheckText(t, "reply", reply)
			if len(reply) > len(text) {
				t.Errorf("the reply is longer than the text: %q of %q", reply, text)
			}
			mailtest.CheckText(t, "snippet", plaintext.Snippet(text))
			mailtest.CheckText(t, "folded", plaintext.FoldForSearch(text))
		}
	})
}
