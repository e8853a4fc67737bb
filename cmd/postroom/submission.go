package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/journal"
	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/store"
)

// maxSubmission is the largest message that a client may submit, in bytes: 40 MB of
// attachments in base64, as the API accepts them, and the texts.
const maxSubmission = 60 << 20

// smtpParts returns the servers for receiving and for submission.
func (n *node) smtpParts(r *inbound.Receiver, api *handlers.Service, doors listeners, maxConns int, certs certificates, kept *journal.Journal) []part {
	cfg := inbound.ServerConfig{
		Receiver: r, Hostname: string(n.cfg.Hostname), Log: n.log,
		MaxSize: n.cfg.MaxMessageSize.bytes(), MaxConns: maxConns, MaxConnsPerIP: int(n.cfg.SMTPMaxConnsPerIP),
		Normalize: n.cfg.SMTPLineEnds == "normalize", Now: n.now,
		OnRefused: func(r inbound.Refusal) {
			kept.AddRefusal(store.SMTPRefusal{IP: r.IP, HELO: r.HELO, From: r.From, To: r.To, Reply: r.Reply, Count: r.Count})
		},
	}
	if certs.get != nil {
		cfg.TLS = certs.config()
	}
	serve := func(name string, l net.Listener, cfg inbound.ServerConfig) part {
		if n.cfg.dev {
			l = devListener{l, n.cfg.devHosts}
		}
		server := inbound.NewServer(cfg)
		return part{name: name, run: func() error { return server.Serve(l) }, stop: server.Shutdown}
	}
	parts := []part{serve("SMTP server", doors.smtp, cfg)}
	cfg.Submission, cfg.MaxSize = submissionTo(api, string(n.cfg.Hostname)), maxSubmission
	if n.cfg.dev {
		key, host := string(n.cfg.BootstrapKey), string(n.cfg.Hostname)
		cfg.Submission.Anonymous = orReceive(submitWith(api, key, netip.IPv6Loopback(), host), r)
		cfg.Submission.Login = func(context.Context, string, netip.Addr) (inbound.Submit, error) {
			return cfg.Submission.Anonymous, nil
		}
	}
	if doors.submission != nil {
		parts = append(parts, serve("submission server", doors.submission, cfg))
	}
	if doors.submissions != nil {
		cfg.ImplicitTLS = true
		parts = append(parts, serve("submission server with TLS", doors.submissions, cfg))
	}
	return parts
}

// submissionTo connects submission to the API, which sends the messages.
func submissionTo(api *handlers.Service, host string) *inbound.Submission {
	return &inbound.Submission{Login: func(ctx context.Context, key string, ip netip.Addr) (inbound.Submit, error) {
		if err := api.Login(ctx, key, ip); err != nil {
			return nil, loginReply(err)
		}
		return submitWith(api, key, ip, host), nil
	}}
}

// submitWith returns the function that submits messages with a key, which it checks
// for each again.
func submitWith(api *handlers.Service, key string, ip netip.Addr, host string) inbound.Submit {
	return func(ctx context.Context, env smtp.Envelope, raw *spool.Spool) (string, error) {
		with := "ESMTPA"
		if env.TLS {
			with = "ESMTPSA"
		}
		done, err := api.Submit(ctx, key, ip, handlers.RawMail{MailFrom: env.MailFrom, RcptTo: env.RcptTo, Host: host, With: with, Open: raw.Reader})
		if err != nil {
			return "", refusal(err)
		}
		text := "queued as " + done.ID
		if done.Held {
			text = "held for approval as " + done.ID
		}
		if done.Repeated {
			text += " (already queued)"
		}
		return text, nil
	}
}

// orReceive returns the function for development that stores what cannot be sent, such as
// a message without From, as mail from outside.
func orReceive(submit inbound.Submit, r *inbound.Receiver) inbound.Submit {
	return func(ctx context.Context, env smtp.Envelope, raw *spool.Spool) (string, error) {
		text, err := submit(ctx, env, raw)
		if refused, ok := errors.AsType[*smtp.Reply](err); ok && refused.Enhanced == "5.6.0" {
			_, err = r.Receive(ctx, env, raw)
			text = "stored as it is"
		}
		return text, err
	}
}

// refusal returns the SMTP reply for an error of the API, with its code and text.
func refusal(err error) error {
	e, ok := errors.AsType[*httpapi.Error](err)
	if !ok {
		return err
	}
	r := &smtp.Reply{Code: 550, Enhanced: "5.7.1", Text: oneLine(e.Error())}
	switch {
	case e.Status >= http.StatusInternalServerError:
		r.Code, r.Enhanced = 451, "4.3.0"
	case e.Status == http.StatusTooManyRequests, e.Code == gen.ErrorCodeIdempotencyInProgress:
		r.Code, r.Enhanced = 451, "4.7.1"
	case e.Status == http.StatusBadRequest:
		r.Code, r.Enhanced = 554, "5.6.0"
	}
	return r
}

// loginReply returns the reply to AUTH.
func loginReply(err error) error {
	r, ok := errors.AsType[*smtp.Reply](refusal(err))
	switch {
	case !ok:
		return err
	case r.Enhanced == "4.7.1": // too many wrong keys
		r.Code, r.Enhanced = 421, "4.7.0"
	case r.Temporary():
		r.Code, r.Enhanced = 454, "4.7.0"
	default:
		r.Code, r.Enhanced = 535, "5.7.8"
	}
	return r
}

// maxReplyText keeps a reply on one line of RFC 5321 section 4.5.3.1.5.
const maxReplyText = 480

// oneLine makes a text fit into a reply: printable ASCII, cut where it is too long.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), maxReplyText)]
}

// isLoopback reports whether an address to listen on is reachable from this machine
// only.
func isLoopback(at string) bool {
	host, _, _ := net.SplitHostPort(at) // already validated
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
