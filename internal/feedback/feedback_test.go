package feedback

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

func newSigner(t testing.TB, key string) *Signer {
	t.Helper()
	s, err := NewSigner(bytes.Repeat([]byte(key), 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var sent = Sent{Account: 7, Message: 123456789, Recipient: 987654321}

func TestReturnPathNamesARecipient(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "k")
	for _, to := range []Sent{sent, {1, 1, 1}, {1 << 40, 1 << 50, 1 << 55}} {
		path := s.ReturnPath(to, "agents.example")
		local, domain, _ := strings.Cut(path, "@")
		if domain != "agents.example" || len(local) > 64 {
			t.Errorf("%s has a local part of %d characters", path, len(local))
		}
		for _, spelt := range []string{path, strings.ToUpper(path), "<" + path + ">"} {
			if got, ok := s.FindReturnPath(spelt); !ok || got != to {
				t.Errorf("%s was read as %v, %t", spelt, got, ok)
			}
		}
	}
}

// A token that was changed, or is from another installation, is invalid (O6).
func TestForgedReturnPaths(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "k")
	_, tag, _ := strings.Cut(strings.TrimSuffix(s.ReturnPath(sent, ""), "@"), "+")
	forged := []string{strings.TrimPrefix(newSigner(t, "other").ReturnPath(sent, ""), "bounce+"), tag + "a", tag + "aaaaaaaa", tag[1:], tag[:len(tag)-1]}
	for i := range tag {
		for _, c := range []byte("abz27") {
			if c != tag[i] {
				forged = append(forged, tag[:i]+string(c)+tag[i+1:])
			}
		}
	}
	for _, f := range forged {
		if to, _, ok := s.ReadReturnTag(strings.TrimSuffix(f, "@")); ok {
			t.Errorf("%s was taken for one to %v", f, to)
		}
	}
	if _, isToken, _ := s.ReadReturnTag("newsletter"); isToken {
		t.Error("a plain tag is taken for a token")
	}
	if _, isToken, _ := s.ReadReturnTag(forged[len(forged)-1]); !isToken {
		t.Error("a damaged token is taken for a plain tag")
	}
}

func TestLinksServeOnePurpose(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "k")
	sub := Subscription{7, 9, "ann@out.example"}
	mail := Tracked{7, "em_1"}
	tokens := map[string]string{"u": s.Unsubscribe(sub), "o": s.Open(mail), "c": s.Click(mail, "https://shop.example/?a=b&c=d#e")}
	for kind, token := range tokens {
		gotSub, u := s.ReadUnsubscribe(token)
		gotOpen, o := s.ReadOpen(token)
		gotClick, target, c := s.ReadClick(token)
		if u != (kind == "u") || o != (kind == "o") || c != (kind == "c") {
			t.Errorf("%s is read as unsubscribe %t, open %t, click %t", kind, u, o, c)
		}
		if u && gotSub != sub || o && gotOpen != mail || c && (gotClick != mail || target != "https://shop.example/?a=b&c=d#e") {
			t.Errorf("%s says %v, %v, %v, %s", kind, gotSub, gotOpen, gotClick, target)
		}
	}
}

// Forged links: each bit changed, cut, padded, broken by line endings, or
// signed with another key (O8, O14).
func TestForgedLinks(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "k")
	token := s.Click(Tracked{7, "em_1"}, "https://shop.example/")
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	forged := []string{
		"", "x", token + "A", token + "=", token[:len(token)-1], token[:20] + "\n" + token[20:], "\r\n" + token,
		newSigner(t, "other").Click(Tracked{7, "em_1"}, "https://shop.example/"),
	}
	for i := range len(raw) * 8 {
		b := bytes.Clone(raw)
		b[i/8] ^= 1 << (i % 8)
		forged = append(forged, base64.RawURLEncoding.EncodeToString(b))
	}
	for _, f := range forged {
		if _, target, ok := s.ReadClick(f); ok {
			t.Errorf("%q leads to %s", f, target)
		}
	}
}

// Every link leads to a web page, even if it is signed (O14).
func TestLinksLeadToWebPagesOnly(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "k")
	for _, target := range []string{
		"javascript:alert(1)", "data:text/html,x", "mailto:a@b.example", "//evil.example/", "/path", "https:evil.example", "https:///x",
		"ftp://a.example/", "https://good.example@evil.example/", "https://a.example/\r\nSet-Cookie: a=b", "https://a.example\\@b.example/", "",
		"https://a.example/" + strings.Repeat("a", 5000),
	} {
		if _, _, ok := s.ReadClick(s.Click(Tracked{1, "em_1"}, target)); ok || IsWeb(target) {
			t.Errorf("%q is taken for a web page", target)
		}
	}
}

func TestUnsubscribeFields(t *testing.T) {
	t.Parallel()
	s := newSigner(t, "k")
	sub := Subscription{7, 9, "ann@out.example"}
	for base, oneClick := range map[string]bool{"https://mail.example/api/": true, "http://127.0.0.1:8080": false} {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		fields := s.UnsubscribeFields(u, sub)
		want := "List-Unsubscribe: <" + strings.TrimSuffix(base, "/") + "/u/" + s.Unsubscribe(sub) + ">\r\n"
		if oneClick {
			want += "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
		}
		if fields != want {
			t.Errorf("fields are\n%s, want\n%s", fields, want)
		}
	}
}

func TestShortKey(t *testing.T) {
	t.Parallel()
	if _, err := NewSigner(make([]byte, 31)); err == nil {
		t.Error("a key of 31 bytes is accepted")
	}
}
