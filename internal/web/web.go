// Package web is the dashboard: pages on which a person sees what came in and
// what became of what went out, approves what programs want to send, and looks
// after domains, webhooks and keys.
//
// Everything that a page does to data it does through the API, as the person who
// is signed in: the same checks, limits and events hold, and no logic is written
// twice. Of the store it uses users, their sessions and the rate limits alone.
//
// Pages are made on the server and work without script; a script of the
// dashboard's own adds to them. Nothing is loaded from elsewhere. A form that is
// sent from another site is refused (CSRF), no page shows in a frame, and a
// session whose user was removed or reset ends with the next request. Faults of
// the API are shown beside the field that they name; a page that fails says so
// with the id of the request, and the log has the reason.
package web

import (
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/remoteimage"
	"github.com/postroom/postroom/store"
)

// Config is what the dashboard needs. All fields but TrustedProxies and Images are
// required.
type Config struct {
	// API serves the calls of the pages, and every path that is no page.
	API http.Handler
	// Store keeps users and sessions.
	Store *store.Store
	// BaseURL is where people reach the dashboard. Cookies are Secure when it is
	// https.
	BaseURL *url.URL
	// NoticeKey signs the notices that pass from one page to the next, and the
	// addresses of images in mail.
	NoticeKey []byte
	// Images fetches the remote images of a mail for somebody who asks for them; nil
	// means that nobody can.
	Images *remoteimage.Fetcher
	// TrustedProxies are those whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// Now is the clock.
	Now func() time.Time
	// Log takes faults of ours, and who signs in.
	Log *slog.Logger
}

// Dashboard is an http.Handler: it answers its own paths, and has the API answer
// all others.
type Dashboard struct {
	cfg       Config
	api       *gen.Client
	store     *store.Store
	now       func() time.Time
	log       *slog.Logger
	mux       *http.ServeMux
	pages     map[string]*template.Template
	assets    assets
	crossSite *http.CrossOriginProtection
	hashing   *semaphore.Weighted // of passwords, by what each needs of memory
}

// New returns the dashboard.
func New(cfg Config) (*Dashboard, error) {
	if len(cfg.NoticeKey) < 32 {
		return nil, errors.New("the notice key is shorter than 32 bytes")
	}
	d := &Dashboard{
		cfg: cfg, store: cfg.Store, now: cfg.Now, log: cfg.Log,
		mux: http.NewServeMux(), crossSite: http.NewCrossOriginProtection(), hashing: semaphore.NewWeighted(maxHashing),
	}
	var err error
	if d.api, err = handlers.NewLocalClient(cfg.API); err != nil {
		return nil, err
	}
	// Behind a proxy the Host that arrives here may be another.
	if err := d.crossSite.AddTrustedOrigin(cfg.BaseURL.Scheme + "://" + cfg.BaseURL.Host); err != nil {
		return nil, err
	}
	if d.assets, err = readAssets(); err != nil {
		return nil, err
	}
	if d.pages, err = d.parsePages(); err != nil {
		return nil, err
	}
	d.routes()
	return d, nil
}

// routes names every page. Those of one subject are in the file of that name.
func (d *Dashboard) routes() {
	d.mux.Handle("GET /assets/{file}", http.HandlerFunc(d.assets.serve))
	d.signInPages()
	d.setupPages()
	d.overviewPages()
	d.inboxPages()
	d.mailPages()
	d.approvalPages()
	d.emailPages()
	d.domainPages()
	d.webhookPages()
	d.keyPages()
	d.suppressionPages()
	d.templatePages()
	d.contactPages()
}

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := d.mux.Handler(r); pattern == "" {
		d.elsewhere(w, r)
		return
	}
	d.mux.ServeHTTP(w, r)
}

// get has f answer GET, and HEAD, of a path, for those who are signed in.
func (d *Dashboard) get(path string, f func(*page) error) {
	d.mux.Handle("GET "+path, d.chain(d.signedIn(f)))
}

// post has f answer the form that is sent to a path, for those who are signed in.
func (d *Dashboard) post(path string, f func(*page) error) {
	d.mux.Handle("POST "+path, d.chain(d.signedIn(f)))
}

// open has f answer a path, "GET /sign-in", for everybody.
func (d *Dashboard) open(pattern string, f func(*page) error) { d.mux.Handle(pattern, d.chain(f)) }
