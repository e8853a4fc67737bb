package web_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store/storetest"
)

// newInbox makes an inbox of the site's account.
func (s *site) newInbox(t *testing.T, name string, policy gen.SendPolicy) *gen.Inbox {
	t.Helper()
	in, err := s.api.CreateInbox(s.asUser(t), gen.NewOptInboxCreate(gen.InboxCreate{
		Name: gen.NewOptString(name), DisplayName: gen.NewOptNilString("The " + name), SendPolicy: gen.NewOptSendPolicy(policy),
	}), gen.CreateInboxParams{})
	must(t, err)
	return in
}

// put receives a message in the inbox.
func (s *site) put(t *testing.T, in *gen.Inbox, raw string) *gen.Message {
	t.Helper()
	receiver := s.receiver(t)
	spool := receiver.NewSpool()
	defer func() { _ = spool.Close() }() // it is in memory
	_, err := io.WriteString(spool, strings.ReplaceAll(raw, "OWN", in.Address))
	must(t, err)
	env := smtp.Envelope{MailFrom: "shop@out.example", RcptTo: []string{in.Address}, RemoteAddr: "192.0.2.1", HELO: "out.example"}
	stored, err := receiver.Receive(t.Context(), env, spool)
	must(t, err)
	m, err := s.api.GetMessage(s.asUser(t), gen.GetMessageParams{MessageID: stored[0].ID})
	must(t, err)
	return &m.Message
}

// receiver returns what receives mail for the site. The DNS of senders has no records.
func (s *site) receiver(t *testing.T) *inbound.Receiver {
	t.Helper()
	auth := mailauth.NewChecker(outbound.NewResolver(smtptest.NewDNS(t, nil)), 0, s.clock.Now)
	r, err := inbound.NewReceiver(inbound.ReceiverConfig{Store: s.store, Domain: storetest.Domain, TempDir: t.TempDir(), Auth: auth, Now: s.clock.Now})
	must(t, err)
	return r
}

// hold submits a message that needs approval.
func (s *site) hold(t *testing.T, in *gen.Inbox, m *gen.MessageSend) *gen.Draft {
	t.Helper()
	response, err := s.api.SendMessage(s.asUser(t), m, gen.SendMessageParams{InboxID: in.ID})
	must(t, err)
	d, ok := response.(*gen.Draft)
	if !ok {
		t.Fatalf("the message was not held: %T", response)
	}
	return d
}

func mailTo(to, subject, text string) *gen.MessageSend {
	return &gen.MessageSend{
		To:      gen.NewAddressArrayRecipients(gen.AddressArray{gen.NewMailboxAddress(gen.Mailbox(to))}),
		Subject: subject, Text: gen.NewOptNilString(text),
	}
}

// htmlMail returns a message with an HTML part, an image in it, and a file.
func htmlMail(subject, from, filename, html string) string {
	return "From: " + encodedWord(from) + " <shop@out.example>\r\nTo: OWN\r\nSubject: " + encodedWord(subject) +
		"\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte(html)) +
		"\r\n--b\r\nContent-Type: image/png\r\nContent-ID: <logo@out.example>\r\nContent-Disposition: inline\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString(picture(120, 40)) +
		"\r\n--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename*=utf-8''" + percent(filename) + "\r\n\r\n%PDF-1.7\r\n--b--\r\n"
}

// encodedWord encodes text so that no character is special in a header (RFC
// 2047).
func encodedWord(s string) string {
	return "=?utf-8?B?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// percent is text as a parameter of RFC 2231.
func percent(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// picture is a PNG: a line on white.
func picture(width, height int) []byte {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = 0xff
	}
	for x := range width {
		m.Set(x, height/2, color.RGBA{61, 79, 214, 255})
	}
	var b bytes.Buffer
	_ = png.Encode(&b, m) // into memory
	return b.Bytes()
}
