package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// verify checks every signature of a message with the records of its domain.
func (w *world) verify(t testing.TB, domain string, mail io.Reader) []*dkim.Verification {
	t.Helper()
	records, err := queue.Records(t.Context(), w.store, domain)
	if err != nil {
		t.Fatal(err)
	}
	vs, err := dkim.VerifyWithOptions(mail, &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
		var found []string
		for _, r := range records {
			if r.Name == name {
				found = append(found, r.Value)
			}
		}
		return found, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

func TestSignatureCoversTheHeader(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		signer := w.signer(t, storetest.Domain)
		const mail = "From: Ann <ann@in.example>\r\nTo: bob@out.example,\r\n eve@out.example\r\nSubject: hello\r\n" +
			"List-Unsubscribe: <https://in.example/u>\r\nX-Own: 1\r\nMIME-Version: 1.0\r\n\r\nText, \r\n\r\n.dot\r\n"
		lines, err := signer.Sign(t.Context(), store.TheInstall, "IN.example", strings.NewReader(mail))
		if err != nil {
			t.Fatal(err)
		}
		vs := w.verify(t, storetest.Domain, strings.NewReader(lines+mail))
		want := []string{"From", "From", "To", "Subject", "Subject", "MIME-Version", "List-Unsubscribe"}
		for _, v := range vs {
			if v.Err != nil {
				t.Errorf("the signed mail: %v", v.Err)
			}
			if diff := cmp.Diff(want, v.HeaderKeys); diff != "" {
				t.Error(diff)
			}
		}
		if len(vs) != 2 {
			t.Fatalf("%d signatures", len(vs))
		}

		for name, changed := range map[string]string{
			"another From":        "From: eve@evil.example\r\n" + lines + mail,
			"another Subject":     lines + "Subject: other\r\n" + mail,
			"another body":        lines + strings.Replace(mail, "Text", "text", 1),
			"a longer body":       lines + mail + "more\r\n",
			"a changed To":        lines + strings.Replace(mail, "bob@", "rob@", 1),
			"no List-Unsubscribe": lines + strings.Replace(mail, "List-Unsubscribe", "X-List", 1),
		} {
			for _, v := range w.verify(t, storetest.Domain, strings.NewReader(changed)) {
				if v.Err == nil {
					t.Errorf("%s: the signature still holds", name)
				}
			}
		}
	})
}

func TestSigningOddMail(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		signer := w.signer(t, storetest.Domain)
		big := "From: a@in.example\r\nSubject: big\r\n\r\n" + strings.Repeat("line with   spaces \r\n", 200_000)
		for name, mail := range map[string]string{
			"large":   big,
			"empty":   "From: a@in.example\r\n\r\n",
			"folded":  "From: a@in.example\r\nSubject: " + strings.Repeat("word\r\n ", 2000) + "end\r\n\r\nx\r\n",
			"long":    "From: a@in.example\r\nSubject: " + strings.Repeat("x", 100_000) + "\r\n\r\nx\r\n",
			"no line": "From: a@in.example\r\n\r\nx",
			"blanks":  "From: a@in.example\r\n\r\n\r\n \t\r\n\r\n",
			"spaces":  "From :  a@in.example \t\r\n\t <a@in.example>\r\nsubject:\r\n  \r\n\t x\ty\r\n\r\n \ta  b\t \r\n\r\n\r\nc\r\n \r\n\r\n",
			"twice":   "From: a@in.example\r\nCc: one\r\nX-Cc: no\r\nCc: two\r\n\r\nx\r\n",
			"gap":     "From: a@in.example\r\n\r\na" + strings.Repeat("\r\n", 20_000) + "b\r\n",
		} {
			lines, err := signer.Sign(t.Context(), store.TheInstall, storetest.Domain, strings.NewReader(mail))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, v := range w.verify(t, storetest.Domain, strings.NewReader(lines+mail)) {
				if v.Err != nil {
					t.Errorf("%s: %v", name, v.Err)
				}
			}
		}
		for name, mail := range map[string]string{
			"no body":          "From: a@in.example\r\n",
			"too large header": strings.Repeat("X-Y: "+strings.Repeat("z", 1000)+"\r\n", 1100) + "\r\nx",
		} {
			if _, err := signer.Sign(t.Context(), store.TheInstall, storetest.Domain, strings.NewReader(mail)); err == nil {
				t.Errorf("%s: signed", name)
			}
		}
	})
}

// A key that cannot be used stops the mail: it must not go out unsigned.
func TestDamagedKeyStopsTheMail(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		mx := smtptest.NewMX(t, smtptest.MXConfig{})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()), func(c *queue.Config) {
			c.Signer = queue.NewSigner(damagedKeys{}, w.clock.Now)
		})
		m := w.send(t, "bob@out.example")

		round(t, q, 1)

		w.wantRecipient(t, m, store.RecipientQueued, "451 4.3.0")
		if len(mx.Messages()) != 0 {
			t.Error("the mail went out unsigned")
		}
	})
}

type damagedKeys struct{}

func (damagedKeys) DKIMKeys(context.Context, int64, string) ([]store.DKIMKey, error) {
	return []store.DKIMKey{{Domain: storetest.Domain, Selector: "s", Algorithm: "rsa", Private: []byte("nothing")}}, nil
}

func TestKeysAreCreatedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for range 2 {
			if err := queue.EnsureKeys(t.Context(), w.store, "In.Example"); err != nil {
				t.Fatal(err)
			}
		}
		records, err := queue.Records(t.Context(), w.store, "in.example")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range records {
			names = append(names, r.Name)
			if r.Type != "TXT" || !strings.HasPrefix(r.Value, "v=DKIM1; k=") {
				t.Errorf("%s %s %q", r.Name, r.Type, r.Value)
			}
		}
		if diff := cmp.Diff([]string{"postroom-rsa._domainkey.in.example", "postroom-ed25519._domainkey.in.example"}, names); diff != "" {
			t.Error(diff)
		}
	})
}

// The signature covers the bytes that the remote server receives, whatever line
// ends the stored message has and wherever a line begins with a dot.
func TestSignatureIsValidAfterDelivery(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		for name, raw := range map[string]string{
			"dots":                "From: a@in.example\r\nSubject: s\r\n\r\n.\r\n..\r\n.a\r\n \r\n.",
			"bare LF":             "From: a@in.example\nSubject: s\n t\n\na\n\n.b\n",
			"bare CR":             "From: a@in.example\r\nSubject: s\r\n\r\na\rb \r\r.c",
			"bare CR in a header": "From: a@in.example\r\nSubject: s\rX-Other: t\r\n\r\na\r\n",
			"header ends with CR": "From: a@in.example\rSubject: s\r\ra\r\n\r\nb\r\n",
			"ends across blocks":  "From: a@in.example\r\n\r\n" + strings.Repeat("0123456\r\n", 8<<10) + "x \r\n\r\n",
		} {
			mx := smtptest.NewMX(t, smtptest.MXConfig{})
			q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()),
				func(c *queue.Config) { c.Signer = w.signer(t, storetest.Domain) })
			storetest.Sent(t, w.store, w.inbox, []string{"bob@out.example"}, func(m *store.NewMessage) {
				m.Content.Raw, m.Size = []byte(raw), int64(len(raw))
			})

			round(t, q, 1)

			data := mx.Wait(t, 1)[0].Data
			vs := w.verify(t, storetest.Domain, bytes.NewReader(data))
			if len(vs) != 2 || !bytes.Contains(data, []byte("a=rsa-sha256")) || !bytes.Contains(data, []byte("a=ed25519-sha256")) {
				t.Errorf("%s: %d signatures, want one by each key", name, len(vs))
			}
			for _, v := range vs {
				if v.Err != nil || v.Domain != storetest.Domain {
					t.Errorf("%s: %s, %v in %q", name, v.Domain, v.Err, data)
				}
			}
		}
	})
}

// A header may repeat a field without limit. The h= line stays short, and the
// signature covers the last ones.
func TestRepeatedFieldsAreBounded(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		signer := w.signer(t, storetest.Domain)
		const names = "From To Cc Subject Date Message-ID Reply-To Sender In-Reply-To References MIME-Version Content-Type " +
			"Content-Transfer-Encoding List-Id List-Help List-Unsubscribe List-Unsubscribe-Post List-Subscribe List-Post List-Owner List-Archive"
		var header strings.Builder
		for i := range 1000 {
			for name := range strings.FieldsSeq(names) {
				fmt.Fprintf(&header, "%s: %d\r\n", name, i)
			}
		}
		mail := header.String() + "\r\nx\r\n"
		fields, err := signer.Sign(t.Context(), store.TheInstall, storetest.Domain, strings.NewReader(mail))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(fields, "\r\n") {
			if len(line) > 998 {
				t.Errorf("a line of %d bytes: %.80s", len(line), line)
			}
		}
		for name, tt := range map[string]struct {
			mail  string
			valid bool
		}{
			"unchanged":      {mail, true},
			"last Cc":        {strings.Replace(mail, "Cc: 999\r\n", "Cc: 1\r\n", 1), false},
			"one Cc removed": {strings.Replace(mail, "Cc: 998\r\n", "", 1), false},
		} {
			vs := w.verify(t, storetest.Domain, strings.NewReader(fields+tt.mail))
			if len(vs) != 2 {
				t.Errorf("%s: %d signatures, want 2", name, len(vs))
			}
			for _, v := range vs {
				if (v.Err == nil) != tt.valid {
					t.Errorf("%s: %v, want valid %t", name, v.Err, tt.valid)
				}
			}
		}
	})
}

// A message that cannot be read to its end leaves no goroutine of the signers.
//
// Not parallel: goroutines of other tests would count.
func TestFailedSigningLeavesNoGoroutine(t *testing.T) { //nolint:paralleltest // see above
	w := newWorld(t, storetest.Config(t, storetest.SQLite))
	signer := w.signer(t, storetest.Domain)
	before := goleak.IgnoreCurrent()
	lost := errors.New("the blob is lost")
	for _, begin := range []string{"From: a@in.example\r\n", "From: a@in.example\r\n\r\n" + strings.Repeat("x\r\n", 10_000)} {
		message := io.MultiReader(strings.NewReader(begin), iotest.ErrReader(lost))
		if fields, err := signer.Sign(t.Context(), store.TheInstall, storetest.Domain, message); !errors.Is(err, lost) || fields != "" {
			t.Errorf("Sign() = %q, %v, want %v", fields, err, lost)
		}
	}
	goleak.VerifyNone(t, before)
}
