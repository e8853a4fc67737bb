package store

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
)

// What decode reads of a column is what encoding/json reads of it.
func TestDecodeReadsColumnsAsJSONDoes(t *testing.T) {
	t.Parallel()
	text := "a \" \u2028 ä"
	compare(t, mail.Addresses{
		From: &mail.Address{Name: "Ann", Email: "ann@out.example"}, To: []mail.Address{{Email: "a@b.example"}, {Email: "c@d.example"}},
		Cc: []mail.Address{{Email: "e@f.example", Name: text}}, Bcc: []mail.Address{{Email: "g@h.example"}}, ReplyTo: []mail.Address{{Name: "No address"}},
	}, `{}`, `{"from":null,"to":null}`, `{"to":[],"later":{"a":[1]}}`, `{"to":[{"email":"a@b.example","later":1}]}`)
	compare(t, mail.AuthResult{SPF: "pass", DKIM: "fail", DMARC: "none", Internal: "pass", Account: "acc_1", Field: text}, `{}`, `{"later":true}`)
	compare(t, mail.Extraction{OTP: &text, Codes: []string{"1", text}, Links: []string{"https://out.example"}, ActionLink: &text},
		`{}`, `{"otp":null,"codes":null,"links":[],"action_link":null,"later":null}`)
	compare(t, References{InReplyTo: []string{"<1@out.example>"}, References: []string{text}}, `{}`)
	compare(t, Body{Text: text, HTML: "<p>", Reply: &text, FromHTML: true, Derived: true}, `{}`, `{"reply":null,"later":""}`)
	compare(t, []mail.Attachment{{ID: "att_1", Part: 2, Filename: text, ContentType: "text/plain", ContentID: "1", Inline: true, Size: 3}}, `[]`)
}

func compare[T any](t *testing.T, full T, others ...string) {
	t.Helper()
	b, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range append(others, string(b)) {
		var want T
		var got JSON[T]
		if err := json.Unmarshal([]byte(column), &want); err != nil {
			t.Fatal(err)
		}
		if err := got.Scan(column); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got.V); d != "" {
			t.Errorf("%s: -want +got:\n%s", column, d)
		}
	}
	var none JSON[T]
	if err := none.Scan(`{"to":`); err == nil {
		t.Errorf("half a column became %+v", none.V)
	}
}

// What encode writes of a body is what encoding/json reads as the same body.
func TestEncodedBodyIsJSON(t *testing.T) {
	t.Parallel()
	every := "a \" \\ \u2028 ä <b>&\x7f"
	for c := range byte(' ') {
		every += string(rune(c))
	}
	empty := ""
	for _, want := range []Body{
		{}, {Derived: true}, {Text: every, HTML: every, Reply: &every, FromHTML: true, Derived: true}, {Reply: &empty}, {HTML: "<p>"},
	} {
		var got Body
		if err := json.Unmarshal([]byte(want.encode()), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
	broken := Body{Text: "a\xff\xc3(b"}
	if got := broken.encode(); !json.Valid([]byte(got)) || !utf8.ValidString(got) {
		t.Errorf("broken text became %q", got)
	}
}
