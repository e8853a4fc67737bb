package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/approval"
	"github.com/postroom/postroom/internal/disk"
	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/docs"
	"github.com/postroom/postroom/internal/domains"
	"github.com/postroom/postroom/internal/dropin"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/httpserver"
	"github.com/postroom/postroom/internal/journal"
	"github.com/postroom/postroom/internal/linkscan"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/internal/maintenance"
	"github.com/postroom/postroom/internal/mcp"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/internal/search"
	"github.com/postroom/postroom/internal/stream"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/store"
)

// queueGrace is how long running deliveries may take during shutdown.
const queueGrace = 20 * time.Second

// assemble connects the packages of the service, which share only the store. It
// starts nothing.
func (n *node) assemble(
	ctx context.Context, s *store.Store, in install, doors listeners, temp string, stopping chan struct{},
) ([]part, error) {
	resolver := outbound.NewResolver(string(n.cfg.Resolver))
	signer, err := feedback.NewSigner(in.keys.feedback)
	if err != nil {
		return nil, err
	}
	stats := newMetrics()
	receiving := inbound.ReceiverConfig{
		Store: s, Domain: string(n.cfg.MailDomain), Hostname: string(n.cfg.Hostname), TempDir: temp, Feedback: signer, FeedbackLoops: n.cfg.FeedbackLoops,
		Auth:     mailauth.NewChecker(mailauth.NewCache(resolver, n.now), mailauth.DefaultTimeout, n.now),
		Space:    n.cfg.spaceFor(ctx, s, temp),
		OnStored: stats.received, Now: n.now, Log: n.log,
	}
	var scanner *linkscan.Scanner
	if n.cfg.scanLinks {
		scanner = linkscan.New(n.log)
		receiving.OnStored = func(copies []store.Message, took time.Duration) {
			stats.received(copies, took)
			for _, m := range copies {
				if x := m.Content.Extracted; x != nil {
					scanner.Add(m.ID, x.V.Links)
				}
			}
		}
	}
	if n.cfg.dev {
		receiving.Auth, receiving.NewInbox = nil, newDevInbox(s)
	}
	receiver, err := inbound.NewReceiver(receiving)
	if err != nil {
		return nil, fmt.Errorf("create SMTP server: %w", err)
	}
	stats.store = s
	owned, err := domains.New(domains.Config{
		Store: s, Resolver: resolver, MailDomain: string(n.cfg.MailDomain), Hostname: string(n.cfg.Hostname),
		Relayed: n.cfg.Relay != "", TokenKey: in.keys.domains, NewKeys: queue.NewKeys, Log: n.log,
	})
	if err != nil {
		return nil, err
	}
	hooks, targets, err := n.webhooks(s, stats)
	if err != nil {
		return nil, err
	}
	streams := stream.New(stream.Config{Store: s, Render: handlers.EventFrames(s), Log: n.log})
	certs, err := n.certificates(s)
	if err != nil {
		return nil, err
	}
	base, _ := n.cfg.baseURL(doors.http.Addr(), addrOf(doors.https))
	links, err := approval.NewLinks(in.keys.approve, base, n.cfg.Approvers)
	if err != nil {
		return nil, err
	}
	limits, smtpConns := n.cfg.connLimits(maxFiles(), doors.smtpServers())
	conns := httpserver.NewConns(limits, n.log)
	n.log.DebugContext(ctx, "limits of connections", "http", limits.Total, "http_per_network", limits.PerNetwork, "smtp", smtpConns)
	kept := journal.New(s, n.now, n.log)
	var findInbox func(context.Context, string) (string, error)
	if n.cfg.dev {
		findInbox = findDevInbox(receiver)
	}
	var linkScan func(string) []gen.ScannedLink
	if scanner != nil {
		linkScan = scanner.Found
	}
	service, doorsOfAPI, err := n.apiParts(s, in, links, doors, conns, certs, stopping, handlers.Config{
		FindInbox: findInbox, LinkScan: linkScan,
		Incoming: receiver, Domains: owned, Feedback: signer, WebhookTargets: targets, WebhookTester: hooks, Streams: streams,
		Config: httpapi.Config{TempDir: temp, OnResponse: func(r httpapi.Response) {
			stats.responded(r)
			recordRequest(kept, r)
		}},
	})
	if err != nil {
		return nil, err
	}
	queue, err := n.queuePart(s, receiver, resolver, &queue.Feedback{Signer: signer, BaseURL: base}, stats)
	if err != nil {
		return nil, err
	}
	retention := maintenance.NewRetention(maintenance.RetentionConfig{Store: s, Emails: n.cfg.EmailRetention.duration(), Log: n.log})
	sweeper := maintenance.NewSweeper(maintenance.SweeperConfig{Store: s, Log: n.log})
	counter := maintenance.NewCounter(s, n.log)
	indexer := search.NewIndexer(search.IndexerConfig{Store: s, Now: n.now, Log: n.log})
	drafts, err := approval.New(approval.Config{
		Store: s, API: service, Send: service.SendDue, Rules: handlers.DueRules(s, string(n.cfg.MailDomain), n.cfg.dev), Now: n.now, Log: n.log,
		Notices: approval.Notices{Approvers: n.cfg.Approvers, Links: links, Domain: string(n.cfg.MailDomain)},
	})
	if err != nil {
		return nil, err
	}
	parts := []part{
		queue, n.webhooksPart(s, hooks), worker("event streams", streams.Run), worker("domains", owned.Run),
		worker("retention", retention.Run), worker("sweeper", sweeper.Run), worker("counter", counter.Run), worker("drafts", drafts.Run), worker("indexer", indexer.Run),
		worker("journal", kept.Run),
	}
	parts = append(parts, doorsOfAPI...)
	parts = append(parts, n.smtpParts(receiver, service, doors, smtpConns, certs, kept)...)
	if scanner != nil {
		parts = append(parts, worker("link scanner", scanner.Run))
	}
	if certs.run != nil {
		parts = append(parts, worker("certificates", certs.run))
	}
	if doors.metrics != nil {
		parts = append(parts, metricsPart(doors.metrics, conns, stats))
	}
	if doors.pprof != nil {
		parts = append(parts, pprofPart(doors.pprof, conns))
	}
	return parts, nil
}

// spaceFor returns a function that returns an error while received mail has to wait
// for free disk space. SQLite reuses the space of deleted rows, but does not return it:
// while enough of it is left, half of the reserve is enough for files and the log.
func (c Config) spaceFor(ctx context.Context, s *store.Store, temp string) func() error {
	folders := append(c.otherFolders(), c.Data, temp)
	return func() error {
		err := disk.Reserved(1, folders...)
		if err == nil || disk.Reserved(2, folders...) != nil {
			return err
		}
		if reusable, failed := s.Reusable(ctx); failed == nil && reusable >= minReusable {
			return nil
		}
		return err
	}
}

// minReusable is how many bytes of the database must be reusable to count.
const minReusable = 64 << 20

// recordRequest records a request of a key, or a change by a user of the dashboard.
// Pages of the dashboard read a lot; that is left out.
func recordRequest(kept *journal.Journal, r httpapi.Response) {
	person := !strings.HasPrefix(r.Caller, "key_")
	if r.Caller == "" || !r.IP.IsValid() || person && r.Method == http.MethodGet {
		return
	}
	kept.AddRequest(store.APIRequest{
		AccountID: r.AccountID, ID: r.RequestID, Caller: r.Caller, Method: r.Method, Path: r.Path, Status: r.Status,
		TookMS: r.Took.Milliseconds(), IP: r.IP.String(),
	})
}

// apiParts creates the API and the dashboard, and the parts that serve them.
func (n *node) apiParts(s *store.Store, in install, links *approval.Links, doors listeners, conns *httpserver.Conns, certs certificates, stopping chan struct{}, cfg handlers.Config) (*handlers.Service, []part, error) {
	base, guessed := n.cfg.baseURL(doors.http.Addr(), addrOf(doors.https))
	if guessed && !n.cfg.dev {
		n.log.Warn("links start with an address that other hosts may not reach", "base_url", base.String(), "setting", envPrefix+"BASE_URL")
	}
	cfg.Store, cfg.MailDomain, cfg.Hostname = s, string(n.cfg.MailDomain), string(n.cfg.Hostname)
	cfg.BaseURL, cfg.FileKey, cfg.NoFiles = base, in.keys.files, !bool(n.cfg.Files)
	cfg.Undo = time.Duration(n.cfg.Undo)
	cfg.KeyPrefix, cfg.SendPolicy = string(n.cfg.KeyPrefix), store.SendPolicy(n.cfg.DefaultSendPolicy)
	cfg.MaxRetentionDays = int(n.cfg.MaxRetentionDays)
	cfg.TrackOpens, cfg.TrackClicks = n.cfg.Track.opens(), n.cfg.Track.clicks()
	cfg.AnySender = n.cfg.dev
	cfg.RateLimits, cfg.TrustedProxies, cfg.AccessLog = !n.cfg.RateLimits.off, n.cfg.TrustedProxies, bool(n.cfg.AccessLog)
	cfg.Rates = n.cfg.RateLimits.Rates
	cfg.Version, cfg.Stopping, cfg.Now, cfg.Log = programVersion(), stopping, n.now, n.log
	cfg.MCP = func(local http.RoundTripper) (http.Handler, error) {
		return whenAsked(n.log, func() (http.Handler, error) {
			return mcp.New(mcp.Config{Local: local, Version: programVersion(), Log: n.log})
		}), nil
	}
	var apps *oauth.Server
	if n.cfg.OAuth {
		apps = oauth.New(oauth.Config{Store: s, BaseURL: base, KeyPrefix: cfg.KeyPrefix, TrustedProxies: n.cfg.TrustedProxies, Now: n.now, Log: n.log})
		cfg.OAuth = apps.Access()
	}
	service, err := handlers.New(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("create API: %w", err)
	}
	var api http.Handler = service
	if n.cfg.Dashboard {
		cfg := web.Config{
			API: api, Store: s, EventBody: handlers.EventBody(s), BaseURL: base, NoticeKey: in.keys.notices, FirstKey: in.firstKey, TrustedProxies: n.cfg.TrustedProxies, Now: n.now, Log: n.log,
			Undo: time.Duration(n.cfg.Undo), Approvals: links, OAuth: apps,
			System: n.system(s),
		}
		if n.cfg.dev {
			cfg.Guest = n.cfg.devHosts.guest
		}
		if api, err = web.New(cfg); err != nil {
			return nil, nil, fmt.Errorf("create dashboard: %w", err)
		}
	}
	if apps != nil {
		api = apps.Handler(api)
	}
	if api, err = docs.Handler(gen.OpenAPI(), api); err != nil {
		return nil, nil, err
	}
	api = dropin.Handler(dropin.Config{
		Names: n.cfg.Dropin, Front: service.Front,
		API: vendorapi.API{Handler: service, BaseURL: base.String(), Dev: n.cfg.dev, Version: cfg.Version, Log: n.log},
	}, api)
	if n.cfg.dev {
		api = n.cfg.devHosts.withoutKey(api, string(n.cfg.BootstrapKey))
	}
	var stop sync.Once
	serve := func(name string, l net.Listener, h http.Handler, cfg *tls.Config) part {
		server := httpserver.New(httpapi.RequestIDs(h, n.now), conns, cfg, n.log)
		return part{
			name: name,
			run:  func() error { return server.Serve(l) },
			stop: func(ctx context.Context) error {
				stop.Do(func() { close(stopping) }) // ends waiting requests
				return server.Shutdown(ctx, l)
			},
		}
	}
	if doors.https == nil {
		return service, []part{serve("HTTP server", doors.http, certs.challenges(api), nil)}, nil
	}
	return service, []part{
		serve("HTTP server", doors.http, certs.challenges(leadToHTTPS(api, doors.http.Addr(), base)), nil),
		serve("HTTPS server", doors.https, api, certs.config("h2", "http/1.1", acme.ALPNProto)),
	}, nil
}

// queuePart returns the queue. Its run function first creates the domain's
// signing keys, so that this does not delay the first start.
func (n *node) queuePart(
	s *store.Store, local *inbound.Receiver, resolver dns.Resolver, fb *queue.Feedback, stats *metrics,
) (part, error) {
	domain := string(n.cfg.MailDomain)
	own, err := netguard.InterfaceAddrs()
	if err != nil {
		return part{}, err
	}
	cfg := queue.Config{
		Store: s, Local: local, Domain: domain, HELO: string(n.cfg.Hostname), MXPort: uint16(n.cfg.MXPort),
		Resolver: resolver, Guard: netguard.New(netguard.Config{Allow: n.cfg.MXAllow, Own: own}),
		Signer: queue.NewSigner(s, n.now), Feedback: fb,
		AllLocal: n.cfg.dev, Grace: queueGrace, OnAttempt: stats.attempted, Now: n.now, Log: n.log,
	}
	if n.cfg.Relay != "" {
		if cfg.Relay, err = outbound.ParseRelay(string(n.cfg.Relay)); err != nil {
			return part{}, err
		}
	}
	queue, err := queue.New(cfg)
	if err != nil {
		return part{}, fmt.Errorf("create queue: %w", err)
	}
	stats.queue = queue.Tally
	return worker("queue", func(ctx context.Context) error {
		if err := n.prepareQueue(ctx, s); err != nil {
			return err
		}
		return queue.Run(ctx)
	}), nil
}

// prepareQueue creates the domain's signing keys and releases the leases of the
// previous run.
func (n *node) prepareQueue(ctx context.Context, s *store.Store) error {
	return n.prepare(ctx, "queue", func() error {
		if n.cfg.dev {
			return nil // nothing is signed
		}
		if err := queue.EnsureKeys(ctx, s, string(n.cfg.MailDomain)); err != nil {
			return err
		}
		left, err := s.ReleaseLeases(ctx, store.WorkRecipients)
		if left > 0 {
			n.log.InfoContext(ctx, "claimed mail that the previous run was delivering", "recipients", left)
		}
		return err
	})
}

// prepare runs do before a part starts its work. Like the rest of the node, it
// waits for a database that is unreachable.
func (n *node) prepare(ctx context.Context, what string, do func() error) error {
	for {
		err := do()
		switch {
		case err == nil, ctx.Err() != nil:
			return nil
		case !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrFull):
			return err
		}
		n.log.WarnContext(ctx, "waiting for the database", "part", what, "error", err)
		work.Pause(ctx, time.Second, nil)
	}
}

// whenAsked returns a handler that is built on the first request. The MCP tools
// need memory that many installations can save.
func whenAsked(log *slog.Logger, build func() (http.Handler, error)) http.Handler {
	made := sync.OnceValues(build)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, err := made()
		if err != nil {
			log.ErrorContext(r.Context(), "create handler failed", "path", r.URL.Path, "error", err)
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			return
		}
		h.ServeHTTP(w, r)
	})
}
