package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	netsmtp "net/smtp"
	"net/textproto"
	"strings"
	"testing"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mcp"
	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/store"
)

// withMCP gives a server its MCP tools.
func withMCP(c *handlers.Config) {
	c.MCP = func(local http.RoundTripper) (http.Handler, error) {
		return mcp.New(mcp.Config{Local: local, Log: c.Log})
	}
}

// submission starts a server for submission and returns its address.
func (s *server) submission(t *testing.T) string {
	t.Helper()
	return s.smtp(t, &inbound.Submission{Login: func(_ context.Context, key string, ip netip.Addr) (inbound.Submit, error) {
		return func(ctx context.Context, env smtp.Envelope, raw *spool.Spool) (string, error) {
			done, err := s.service.Submit(ctx, key, ip, handlers.RawMail{
				MailFrom: env.MailFrom, RcptTo: env.RcptTo, Host: "mx.in.example", With: "ESMTPA", Open: raw.Reader,
			})
			if refused, ok := errors.AsType[*httpapi.Error](err); ok {
				return "", &smtp.Reply{Code: 550, Enhanced: "5.7.1", Text: refused.Code}
			}
			return fmt.Sprintf("held=%t", done.Held), err
		}, nil
	}})
}

// smtp starts a server for receiving, or for submission, and returns its address.
func (s *server) smtp(t *testing.T, submission *inbound.Submission) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	receiver, err := inbound.NewReceiver(inbound.ReceiverConfig{Store: s.store, Domain: mailDomain, TempDir: t.TempDir(), Now: s.clock.Now, Log: log})
	must(t, err)
	server := inbound.NewServer(inbound.ServerConfig{
		Receiver: receiver, Hostname: "mx.in.example", MaxSize: 1 << 20, Now: s.clock.Now, Log: log,
		Submission: submission,
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// deliverAt delivers a message over SMTP from another server.
func deliverAt(addr, text string, to ...string) error {
	return netsmtp.SendMail(addr, nil, "bounce@far.example", to, []byte(strings.ReplaceAll(text, "\n", "\r\n")))
}

// outcome is what became of a send.
type outcome string

const (
	accepted outcome = "accepted"
	held     outcome = "held for approval"
)

// submitAt submits one message to a server for submission. A refusal is an outcome
// with the error code.
func submitAt(addr, key, from string, to ...string) (outcome, error) {
	c, err := netsmtp.Dial(addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if err := c.Auth(netsmtp.PlainAuth("", "api", key, "127.0.0.1")); err != nil {
		return "", err
	}
	if err := c.Mail(from); err != nil {
		return "", err
	}
	for _, to := range to {
		if err := c.Rcpt(to); err != nil {
			return refusedBy(err)
		}
	}
	// The reply to the end of the data tells apart what is accepted and what is held.
	id, err := c.Text.Cmd("DATA")
	if err != nil {
		return "", err
	}
	c.Text.StartResponse(id)
	_, _, err = c.Text.ReadResponse(354)
	c.Text.EndResponse(id)
	if err != nil {
		return "", err
	}
	w := c.Text.DotWriter()
	if _, err := fmt.Fprintf(w, "From: %s\r\nTo: %s\r\nSubject: s\r\n\r\nt\r\n", from, to[0]); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	_, text, err := c.Text.ReadResponse(250)
	if err != nil {
		return refusedBy(err)
	}
	if strings.HasSuffix(text, "held=true") {
		return held, nil
	}
	return accepted, nil
}

// refusedBy turns a refusal of the submission server into an outcome.
func refusedBy(err error) (outcome, error) {
	if reply, ok := errors.AsType[*textproto.Error](err); ok && reply.Code == 550 {
		return outcome(strings.TrimPrefix(reply.Msg, "5.7.1 ")), nil
	}
	return "", err
}

// callTool calls a tool that sends and returns what became of it.
func (s *server) callTool(ctx context.Context, t *testing.T, key, tool, arguments string) (outcome, error) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
	res, err := s.try(ctx, t, http.MethodPost, "/mcp", body, as(key))
	if err != nil {
		return "", err
	}
	var got struct {
		Result struct {
			IsError           bool
			Content           []struct{ Text string }
			StructuredContent struct{ Object string }
		}
	}
	if err := json.Unmarshal(res.body, &got); err != nil {
		return "", fmt.Errorf("%w: %s", err, res.body)
	}
	switch r := got.Result; {
	case r.IsError && len(r.Content) > 0:
		code, _, _ := strings.Cut(r.Content[0].Text, ":")
		return outcome(code), nil
	case r.StructuredContent.Object == "draft":
		return held, nil
	case r.StructuredContent.Object == "message", r.StructuredContent.Object == "email":
		return accepted, nil
	}
	return "", fmt.Errorf("the result of %s: %s", tool, res.body)
}

// overAPI calls the API and returns what became of it.
func (s *server) overAPI(ctx context.Context, t *testing.T, key, path, body string) (outcome, error) {
	t.Helper()
	res, err := s.try(ctx, t, http.MethodPost, path, body, as(key))
	if err != nil {
		return "", err
	}
	switch res.status {
	case http.StatusCreated:
		return accepted, nil
	case http.StatusAccepted:
		return held, nil
	}
	var refused struct{ Error struct{ Code string } }
	if err := json.Unmarshal(res.body, &refused); err != nil || refused.Error.Code == "" {
		return "", fmt.Errorf("%d %s", res.status, res.body)
	}
	return outcome(refused.Error.Code), nil
}

// sending is a node with all ways to send one message from an inbox.
type sending struct {
	*server
	addr     string // of the server for submission
	key      string
	in       store.Inbox
	received store.Message // in the inbox
}

// send sends one message through a door: one of sendDoors, "MCP" or "SMTP".
func (s *sending) send(ctx context.Context, t *testing.T, door, to string) (outcome, error) {
	t.Helper()
	switch door {
	case "MCP":
		return s.callTool(ctx, t, s.key, "send_email", `{"inbox_id":"`+s.in.ID+`","to":["`+to+`"],"subject":"s","text":"t"}`)
	case "SMTP":
		return submitAt(s.addr, s.key, s.in.Address, to)
	}
	path, body := sendDoors[door](s.in, s.received, to)
	return s.overAPI(ctx, t, s.key, path, body)
}
