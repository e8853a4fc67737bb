// Package web is the dashboard. Users read mail, follow deliveries, approve
// drafts, and manage domains, webhooks and keys.
//
// All changes go through the API as the signed-in user, so the same checks,
// limits and events apply. The package uses the store only for users, what they
// have read, sessions, rate limits, to find inboxes by a part of the address, and to
// count and retry sent mail.
//
// Pages are rendered on the server and work without scripts; the dashboard's own
// script improves them. Nothing is loaded from other hosts. Forms from other
// sites are refused (CSRF), pages cannot be framed, and a session ends with the
// next request after its user was removed or reset. API errors are shown beside
// the field that they name. A page that fails shows the request id; the log has
// the cause.
package web

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/approval"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/internal/remoteimage"
	"github.com/postroom/postroom/store"
)

// Config configures the dashboard. All fields but TrustedProxies, Images,
// System, Approvals and OAuth are required.
type Config struct {
	// API serves the calls of the pages and all paths that do not belong to the
	// dashboard.
	API http.Handler
	// Store keeps users and sessions.
	Store *store.Store
	// EventBody returns what webhooks are sent for an event, or store.ErrNotFound if
	// its subject is deleted.
	EventBody func(ctx context.Context, e store.Event) ([]byte, error)
	// BaseURL is the public URL of the dashboard. Cookies are Secure if it is
	// https.
	BaseURL *url.URL
	// NoticeKey signs the notices between pages and the URLs of images in
	// messages.
	NoticeKey []byte
	// Images fetches the remote images of a message when a user requests them;
	// nil disables them.
	Images *remoteimage.Fetcher
	// Undo is how long an approval, and with scripts the deletion of messages, can be
	// undone; 0 means not at all.
	Undo time.Duration
	// Approvals reads the links in emails to approvers; nil disables them.
	Approvals *approval.Links
	// OAuth checks the requests of applications that ask to connect; nil refuses
	// them.
	OAuth *oauth.Server
	// System describes the installation, on the page of its health; nil: no such page.
	System *System
	// TrustedProxies are the networks whose X-Forwarded-For header is trusted.
	TrustedProxies []netip.Prefix
	// Now is the clock.
	Now func() time.Time
	// Log receives our own faults and sign-ins.
	Log *slog.Logger
}

// Dashboard is an http.Handler. It serves its own paths and passes all others to
// the API.
type Dashboard struct {
	cfg       Config
	api       *gen.Client
	store     *store.Store
	now       func() time.Time
	log       *slog.Logger
	mux       *http.ServeMux
	pages     map[string]func() (*template.Template, error)
	assets    assets
	crossSite *http.CrossOriginProtection
	hashing   *semaphore.Weighted // limits concurrent hashing by memory
	// previewing limits the files whose text is read at the same time.
	previewing *semaphore.Weighted
	checkup    checkup
	begun      sync.Map // numbers of the accounts whose "Get started" list is done
}

// maxPreviewing is how many files are read for their text at the same time.
const maxPreviewing = 2

// New returns a Dashboard. It returns an error if cfg is invalid.
func New(cfg Config) (*Dashboard, error) {
	if len(cfg.NoticeKey) < 32 {
		return nil, errors.New("the notice key is shorter than 32 bytes")
	}
	d := &Dashboard{
		cfg: cfg, store: cfg.Store, now: cfg.Now, log: cfg.Log,
		mux: http.NewServeMux(), crossSite: http.NewCrossOriginProtection(), hashing: semaphore.NewWeighted(maxHashing), previewing: semaphore.NewWeighted(maxPreviewing),
	}
	var err error
	if d.api, err = httpapi.NewLocalClient(cfg.API); err != nil {
		return nil, err
	}
	// A proxy may change the Host header.
	if err := d.crossSite.AddTrustedOrigin(cfg.BaseURL.Scheme + "://" + cfg.BaseURL.Host); err != nil {
		return nil, err
	}
	if d.assets, err = readAssets(); err != nil {
		return nil, err
	}
	if d.pages, err = d.readPages(); err != nil {
		return nil, err
	}
	d.routes()
	return d, nil
}

// routes registers every page. The handlers of one subject are in the file with
// that name.
func (d *Dashboard) routes() {
	d.mux.Handle("GET /assets/{file}", http.HandlerFunc(d.assets.serve))
	d.signInPages()
	d.setupPages()
	d.overviewPages()
	d.inboxPages()
	d.mailPages()
	d.searchPages()
	d.approvalPages()
	d.approveLinkPages()
	d.emailPages()
	d.domainPages()
	d.webhookPages()
	d.keyPages()
	d.consentPages()
	d.suppressionPages()
	d.listPages()
	d.templatePages()
	d.contactPages()
	d.logPages()
	d.settingsPages()
	d.peoplePages()
}

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := d.mux.Handler(r); pattern == "" {
		d.elsewhere(w, r)
		return
	}
	d.mux.ServeHTTP(w, r)
}

// get registers f for GET and HEAD, for users of every role.
func (d *Dashboard) get(path string, f func(*page) error) { d.getFor(store.RoleViewer, path, f) }

// getFor is get for users whose role includes least.
func (d *Dashboard) getFor(least store.Role, path string, f func(*page) error) {
	d.mux.Handle("GET "+path, d.chain(d.signedIn(least, f)))
}

// post registers f for a form, for admins.
func (d *Dashboard) post(path string, f func(*page) error) { d.postFor(store.RoleAdmin, path, f) }

// postFor is post for users whose role includes least.
func (d *Dashboard) postFor(least store.Role, path string, f func(*page) error) {
	d.mux.Handle("POST "+path, d.chain(d.signedIn(least, f)))
}

// open registers f for a pattern such as "GET /sign-in", without sign-in.
func (d *Dashboard) open(pattern string, f func(*page) error) { d.mux.Handle(pattern, d.chain(f)) }
