package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/report"
	"github.com/postroom/postroom/store"
)

// ReceiverConfig configures a Receiver. Store, Domain and TempDir are required.
type ReceiverConfig struct {
	// Store stores the messages.
	Store *store.Store
	// Domain is the mail domain of the installation, in lower case. Other domains
	// are refused unless an account has verified them.
	Domain string
	// TempDir is the folder for large messages while they arrive. No other
	// process may use it.
	TempDir string
	// Feedback verifies reverse-paths; nil disables them, and reports.
	Feedback *feedback.Signer
	// Auth checks SPF, DKIM and DMARC; nil disables the checks. A message of our
	// own queue is not checked: its result is the account that sent it.
	Auth *mailauth.Checker
	// FeedbackLoops are domains and addresses whose reports count about any
	// recipient, in addition to those of well-known feedback loops.
	FeedbackLoops []string
	// Hostname is the host name in authentication results; empty means Domain.
	Hostname string
	// NewInbox, if not nil, creates the inbox for an address that has none, on any
	// domain. It is for development. The address has no tag.
	NewInbox func(ctx context.Context, local, domain string) error
	// Space, if not nil, returns an error that wraps syscall.ENOSPC while the disk
	// has no space for received mail.
	Space func() error
	// OnStored, if not nil, is called after a message is available in its inboxes, with
	// its copies. The time since its last byte arrived is 0 for mail of our own queue.
	OnStored func(copies []store.Message, took time.Duration)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log receives what an operator may act on; nil means slog.Default().
	Log *slog.Logger
}

// Receiver parses messages and stores them in inboxes. It is safe for concurrent
// use.
type Receiver struct {
	cfg     ReceiverConfig
	spools  *spool.Folder
	reports *report.Matcher
	reading chan struct{} // holds a token for each message being parsed
	large   chan struct{} // holds a token for each large message in memory
}

// NewReceiver returns a receiver. It creates the folder for temporary files, or
// empties it.
func NewReceiver(cfg ReceiverConfig) (*Receiver, error) {
	if cfg.Store == nil || cfg.Domain == "" || cfg.TempDir == "" {
		return nil, errors.New("receiver: store, domain and temporary folder are required")
	}
	cfg.Domain = strings.ToLower(cfg.Domain)
	cfg.Hostname = strings.ToLower(cmp.Or(cfg.Hostname, cfg.Domain))
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	spools, err := spool.Open(cfg.TempDir, spoolMemory, cfg.Space)
	if err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}
	return &Receiver{
		cfg: cfg, spools: spools,
		reports: &report.Matcher{Store: cfg.Store, Feedback: cfg.Feedback, Loops: cfg.FeedbackLoops},
		reading: make(chan struct{}, 2*runtime.GOMAXPROCS(0)), large: make(chan struct{}, maxLarge),
	}, nil
}

// messageLimits returns the limits for one message, with its own time budget.
func messageLimits() mail.Limits {
	lim := mail.DefaultLimits()
	lim.Budget = cpubudget.New(readBudget)
	return lim
}

// NewSpool returns an empty spool for one message. The caller closes it.
func (r *Receiver) NewSpool() *spool.Spool { return r.spools.New() }

// Receive stores the message in raw for every recipient of env, all copies or
// none, and returns the stored messages. Their Content.Raw is valid until raw is
// closed. Errors are those of Resolve, a *smtp.Reply if the message is refused
// (552 5.3.4 header too large, 554 5.4.6 loop), or the store's.
func (r *Receiver) Receive(ctx context.Context, env smtp.Envelope, raw *spool.Spool) ([]store.Message, error) {
	to, err := resolveAll(ctx, env.RcptTo, r.target)
	if err != nil {
		return nil, err
	}
	return r.deliver(ctx, env, to, raw, nil)
}

// deliver authenticates and parses a message and stores a copy for each target, with the
// results of a report. If one of several inboxes was deleted after it was resolved, nothing is
// stored: the client tries again, and RCPT then refuses that inbox.
func (r *Receiver) deliver(ctx context.Context, env smtp.Envelope, to []target, raw *spool.Spool, attempts []*store.Attempt) ([]store.Message, error) {
	begun := time.Now() // only to measure the duration
	lim := messageLimits()
	auth := r.authenticate(ctx, env)
	defer auth.Stop()
	if err := r.inspect(ctx, raw, auth, lim); err != nil {
		return nil, err
	}
	rep, to, err := r.reported(ctx, env, to, raw, auth, lim)
	if err != nil {
		return nil, err
	}
	if n := len(rep.Reports); n > 0 {
		r.cfg.Log.InfoContext(ctx, "report on sent mail", "status", rep.Reports[0].Status, "recipients", n, "remote_ip", env.RemoteAddr)
	}
	if len(to) == 0 {
		return nil, r.reports.Keep(ctx, rep, false)
	}
	if err := r.hasRoom(to); err != nil {
		return nil, err
	}
	m, leave, err := r.prepare(ctx, env, raw, auth, lim)
	if err != nil {
		return nil, err
	}
	defer leave()
	if m.Content.Auth, err = r.authResult(ctx, env, auth); err != nil {
		return nil, err
	}
	stored, err := r.cfg.Store.AddReceived(ctx, copies(m, to), attempts, rep.Reports...)
	if listed, ok := errors.AsType[*store.ListError](err); ok {
		return nil, r.refuse(ctx, listed, env, rep)
	}
	if errors.Is(err, store.ErrNotFound) && len(to) == 1 && to[0].sent == nil {
		return nil, replyNoInbox
	}
	if err != nil {
		return nil, err
	}
	if r.cfg.OnStored != nil {
		took := time.Since(begun)
		if attempts != nil {
			took = 0
		}
		r.cfg.OnStored(stored, took)
	}
	return stored, r.reports.Keep(ctx, rep, true)
}

// authenticate begins to check SPF, DKIM and DMARC of a message. It returns nil for a
// message of our own queue, whose sender the API has checked.
func (r *Receiver) authenticate(ctx context.Context, env smtp.Envelope) *mailauth.Check {
	client, err := netip.ParseAddr(env.RemoteAddr)
	if r.cfg.Auth == nil || err != nil {
		return nil
	}
	return r.cfg.Auth.Start(ctx, mailauth.Envelope{Client: client, HELO: env.HELO, MailFrom: env.MailFrom})
}

// authResult waits for the results of a message from outside, and returns them. They are
// nil if it is not checked. For a message of our own queue, which has checked that the
// account may use the address, the result is that account.
func (r *Receiver) authResult(ctx context.Context, env smtp.Envelope, auth *mailauth.Check) (none *store.JSON[mail.AuthResult], err error) {
	if env.Account != 0 {
		id, err := r.cfg.Store.PublicAccountID(ctx, env.Account)
		return &store.JSON[mail.AuthResult]{V: mail.AuthResult{SPF: "none", DKIM: "none", DMARC: "none", Internal: "pass", Account: id}}, err
	}
	if auth == nil {
		return none, nil
	}
	v := auth.Wait()
	if v.Fault != nil { // the message is stored nevertheless
		r.cfg.Log.ErrorContext(ctx, "message not authenticated", "error", v.Fault)
	}
	return &store.JSON[mail.AuthResult]{V: mail.AuthResult{
		SPF: string(v.SPF.Result), DKIM: string(v.Signed()), DMARC: string(v.DMARC.Result), Field: v.Field(r.cfg.Hostname, auth.Envelope()),
	}}, nil
}

// DeliverLocal stores a message of our own queue, of size bytes, and records
// attempts in the same transaction, so that it cannot arrive twice. The size
// limit of SMTP does not apply. Errors are those of Receive and of rawMail, and
// store.ErrState if the claim on the recipient is lost.
func (r *Receiver) DeliverLocal(ctx context.Context, env smtp.Envelope, rawMail io.Reader, size int64, attempts []*store.Attempt) error {
	to, err := resolveAll(ctx, env.RcptTo, r.inboxTarget)
	if err != nil {
		return err
	}
	raw := r.NewSpool()
	defer r.close(ctx, raw)
	n, err := io.Copy(raw, rawMail)
	if err != nil {
		return fmt.Errorf("read the mail: %w", err)
	}
	if n != size {
		return fmt.Errorf("read the mail: %d bytes, not %d: %w", n, size, io.ErrUnexpectedEOF)
	}
	_, err = r.deliver(ctx, env, to, raw, attempts)
	return err
}

// close closes a spool. It only logs an error, for example about a file that
// cannot be removed.
func (r *Receiver) close(ctx context.Context, raw *spool.Spool) {
	if err := raw.Close(); err != nil {
		r.cfg.Log.WarnContext(ctx, "temporary file not removed", "error", err)
	}
}

// refuse refuses a message that a list blocks, and records that unless the client shall
// try again. A report still counts, and is then accepted.
func (r *Receiver) refuse(ctx context.Context, listed *store.ListError, env smtp.Envelope, rep report.Results) error {
	if listed.Temporary && rep.Empty() {
		r.cfg.Log.InfoContext(ctx, "message deferred: its sender may be allowed by a list, and cannot be authenticated now", "inbox_id", listed.InboxID, "remote_ip", env.RemoteAddr)
		return replyListedLater
	}
	r.cfg.Log.InfoContext(ctx, "message refused by a list", "inbox_id", listed.InboxID, "list_id", listed.Entry, "remote_ip", env.RemoteAddr)
	if err := r.cfg.Store.RecordBlocked(ctx, listed); err != nil {
		return err
	}
	if !rep.Empty() {
		return r.reports.Keep(ctx, rep, false)
	}
	return replyListed
}

// hasRoom returns an error if the disk has no space for mail, or if all inboxes are
// full. If only some have become full since RCPT, all get the message, because one
// reply is for all recipients. A reverse-path is not an inbox yet and has room.
func (r *Receiver) hasRoom(to []target) error {
	if r.cfg.Space != nil {
		if err := r.cfg.Space(); err != nil {
			return fmt.Errorf("free space: %w", err)
		}
	}
	if slices.ContainsFunc(to, func(t target) bool { return t.inbox.Seq == 0 || !r.cfg.Store.Full(t.inbox) }) {
		return nil
	}
	return replyInboxFull
}
