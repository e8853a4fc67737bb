package mail_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
)

func TestParseListPattern(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want, fault string }{
		{"Ann@Example.COM", "ann@example.com", ""},
		{"*@Example.com.", "*@example.com", ""},
		{"*@*.Example.com", "*@*.example.com", ""},
		{"*@Bücher.example", "*@xn--bcher-kva.example", ""},
		{"*@*.com", "*@*.com", ""},
		{`"ann"@example.com`, "ann@example.com", ""},
		{"ann+news@example.com", "", "tag"},
		{"a*@example.com", "", "*"},
		{"*", "", "*"},
		{"*@", "", "domain"},
		{"*@*", "", "domain"},
		{"*@*.*.com", "", "domain"},
		{"*@a b", "", "domain"},
		{"ann", "", "address"},
		{"ann@exa\nmple.com", "", "line break"},
		{"*@[192.0.2.1]", "", "domain"},
	}
	for _, tt := range tests {
		got, err := mail.ParseListPattern(tt.in)
		if got != tt.want || (err != nil) != (tt.fault != "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%q: got %q, %v", tt.in, got, err)
		}
	}
}

func TestListFindsEveryFormOfAnAddress(t *testing.T) {
	t.Parallel()
	l := mail.NewList([]mail.ListEntry{
		{ID: "1", Pattern: "jo.doe@blocked.example", Action: mail.ListBlock},
		{ID: "2", Pattern: "*@evil.example", Action: mail.ListBlock},
		{ID: "3", Pattern: "*@*.evil.example", Action: mail.ListApprove},
		{ID: "4", Pattern: "*@xn--bcher-kva.example", Action: mail.ListBlock},
		{ID: "5", Pattern: "*@ok.example", Action: mail.ListAllow},
		{ID: "6", Pattern: "bad@ok.example", Action: mail.ListBlock},
	})
	tests := []struct {
		email string
		want  string // the entry that decides
	}{
		{"jo.doe@blocked.example", "1"}, {"JoDoe@BLOCKED.example", "1"}, {"j.o.doe+x@blocked.example", "1"}, {`"jo.doe"@blocked.example`, "1"},
		{"x@evil.example", "2"}, {"x@a.evil.example", "3"}, {"x@a.b.evil.example", "3"}, {"x@Bücher.example", "4"}, {"x@xn--bcher-kva.example", "4"},
		{"x@ok.example", "5"}, {"bad@ok.example", "6"}, {"b.a.d@ok.example", "6"}, {"x%evil.example@ok.example", "2"}, {"evil.example!x@ok.example", "2"},
		{`"x@evil.example"@ok.example`, "2"}, {"x%evil.example%ok.example@ok.example", "2"}, {"x@evil.example.", "2"}, {"x@other.example", ""},
		{"x%other.example@ok.example", ""},
	}
	for _, tt := range tests {
		if _, by := l.Of(tt.email, true); by.ID != tt.want {
			t.Errorf("%s: got %q, want %q", tt.email, by.ID, tt.want)
		}
	}
	if a, _ := l.Of("x@ok.example", false); a != mail.ListBlock {
		t.Errorf("an address that is not to be trusted: %s", a)
	}
}
