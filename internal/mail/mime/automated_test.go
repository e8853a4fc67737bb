package mime

import (
	"testing"

	"github.com/postroom/postroom/internal/mail"
)

func TestAutomated(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		m    Message
		null bool
		want bool
	}{
		{"a person", Message{}, false, false},
		{"the null reverse-path", Message{}, true, true},
		{"generated", Message{AutoSubmitted: "auto-generated"}, false, true},
		{"replied, with a parameter", Message{AutoSubmitted: "Auto-Replied; owner=x"}, false, true},
		{"said not to be", Message{AutoSubmitted: "no (a person)"}, false, false},
		{"bulk", Message{Precedence: "Bulk"}, false, true},
		{"another precedence", Message{Precedence: "first-class"}, false, false},
		{"an automatic reply by another field", Message{AutoReply: true}, false, true},
		{"an answer with the subject of an automatic reply", Message{Subject: "Automatic reply: Offer", InReplyTo: []string{"<a@b>"}}, false, true},
		{"the same in German", Message{Subject: "Automatische Antwort: Angebot", References: []string{"<a@b>"}}, false, true},
		{"the same in Japanese", Message{Subject: "自動応答: 件名", InReplyTo: []string{"<a@b>"}}, false, true},
		{"the same in brackets", Message{Subject: "[Auto-Reply] Offer", InReplyTo: []string{"<a@b>"}}, false, true},
		{"that subject, but no answer", Message{Subject: "Automatic reply: how do I set one up?"}, false, false},
		{"an answer to an automatic reply", Message{Subject: "Re: Automatic reply: Offer", InReplyTo: []string{"<a@b>"}}, false, false},
		{"a list", Message{HasListField: true}, false, true},
		{"a person with an address", Message{Addresses: mail.Addresses{From: &mail.Address{Email: "ann@out.example"}}}, false, false},
		{"a no-reply sender", Message{Addresses: mail.Addresses{From: &mail.Address{Email: "No-Reply@out.example"}}}, false, true},
		{"noreply", Message{Addresses: mail.Addresses{From: &mail.Address{Email: "noreply@out.example"}}}, false, true},
		{"noreply with a tag", Message{Addresses: mail.Addresses{From: &mail.Address{Email: "noreply+42@out.example"}}}, false, true},
		{"donotreply", Message{Addresses: mail.Addresses{From: &mail.Address{Email: "donotreply@out.example"}}}, false, true},
		{"do-not-reply", Message{Addresses: mail.Addresses{From: &mail.Address{Email: "do-not-reply@out.example"}}}, false, true},
		{"the mailer daemon", Message{Addresses: mail.Addresses{From: &mail.Address{Email: "MAILER-DAEMON@out.example"}}}, false, true},
		{"notifications", Message{Addresses: mail.Addresses{From: &mail.Address{Email: "notifications@out.example"}}}, false, true},
		{"bounces", Message{Addresses: mail.Addresses{From: &mail.Address{Email: "bounces-7@out.example"}}}, false, true},
		{"a name that only begins like one", Message{Addresses: mail.Addresses{From: &mail.Address{Email: "noreplyhere@out.example"}}}, false, false},
		{"a sender without an address", Message{Addresses: mail.Addresses{From: &mail.Address{Name: "noreply"}}}, false, false},
	}
	for _, tt := range tests {
		if got := tt.m.Automated(tt.null); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}
