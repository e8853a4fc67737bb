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
	"strings"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/approval"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/internal/passhash"
	"github.com/postroom/postroom/store"
)

// Config configures the dashboard. All fields but TrustedProxies,
// System, Approvals, OAuth and Guest are required.
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
	// FirstKey is the API key of the first start, to show it once more to its user; "" at
	// later starts.
	FirstKey string
	// Undo is how long an approval, and with scripts the deletion of messages, can be
	// undone; 0 means not at all.
	Undo time.Duration
	// Approvals reads the links in emails to approvers; nil disables them.
	Approvals *approval.Links
	// OAuth checks the requests of applications that ask to connect; nil refuses
	// them.
	OAuth *oauth.Server
	// Guest returns the name of the user that a visitor without a session becomes, or "" if
	// they must sign in; nil: everyone must.
	Guest func(*http.Request) string
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
	version   string // of the assets
	crossSite *http.CrossOriginProtection
	passwords *passhash.Hasher
	checkup   checkup
	firstKey  atomic.Pointer[string]
}

// New returns a Dashboard. It returns an error if cfg is invalid.
func New(cfg Config) (*Dashboard, error) {
	if len(cfg.NoticeKey) < 32 {
		return nil, errors.New("the notice key is shorter than 32 bytes")
	}
	d := &Dashboard{
		cfg: cfg, store: cfg.Store, now: cfg.Now, log: cfg.Log,
		mux: http.NewServeMux(), crossSite: http.NewCrossOriginProtection(), passwords: passhash.New(),
	}
	if cfg.FirstKey != "" {
		d.firstKey.Store(&cfg.FirstKey)
	}
	var err error
	if d.api, err = httpapi.NewLocalClient(cfg.API); err != nil {
		return nil, err
	}
	// A proxy may change the Host header.
	if err := d.crossSite.AddTrustedOrigin(cfg.BaseURL.Scheme + "://" + cfg.BaseURL.Host); err != nil {
		return nil, err
	}
	if d.version, err = assetVersion(); err != nil {
		return nil, err
	}
	if d.pages, err = d.readPages(); err != nil {
		return nil, err
	}
	d.routes()
	return d, nil
}

// routes registers every page.
func (d *Dashboard) routes() {
	d.mux.Handle("GET /assets/{file}", http.HandlerFunc(d.asset))

	d.open("GET /sign-in", d.askSignIn)
	d.open("POST /sign-in", d.signIn)
	d.open("POST /sign-out", d.signOut)

	d.open("GET /setup/{token}", d.showSetup)
	d.open("POST /setup/{token}", d.setPassword)
	d.getFor(store.RoleAdmin, firstKeyPath, d.showFirstKey)

	d.get("/{$}", d.overview)
	d.post("/started", d.dismissStart)
	d.post("/stop", d.stop)
	d.post("/resume", d.resume)

	d.get("/inboxes", d.inboxes)
	d.post("/inboxes", d.createInbox)
	d.get("/inboxes/{id}", d.inbox)
	d.form("/inboxes/{id}/settings", d.inboxSettings, d.updateInbox)
	d.post("/inboxes/{id}/delete", d.deleteInbox)
	d.post("/inboxes/{id}/simulate", d.simulate)

	d.get("/inboxes/{id}/threads/{thread}", d.thread)
	d.get("/messages/{id}", d.message)
	d.get("/messages/{id}/view", d.messageFrame)
	d.get("/messages/{id}/raw", d.downloadRaw)
	d.get("/messages/{id}/attachments/{attachment}", d.downloadAttachment)
	d.get("/messages/{id}/attachments/{attachment}/text", d.showText)
	d.post("/messages/{id}/delete", d.deleteMessage)
	d.form("/write", d.writeForm, d.write)
	d.form("/messages/{id}/reply", d.replyForm, d.reply)
	d.post("/messages/{id}/calendar", d.answer)
	d.form("/messages/{id}/forward", d.forwardForm, d.forward)
	d.open("GET /mail-images/{id}/{attachment}", d.mailImage)
	d.get("/live", d.live)
	d.get("/messages", d.allMessages)
	d.get("/go", d.places)
	d.post("/messages/delete", d.deleteMessages)
	d.postFor(store.RoleViewer, "/messages/read", d.markAllRead)
	d.postFor(store.RoleViewer, "/messages/{id}/unread", d.markUnread)

	d.get("/approvals", d.approvals)
	d.get("/approvals/{id}", d.showApproval)
	d.get("/approvals/{id}/view", d.draftFrame)
	d.get("/approvals/{id}/attachments/{attachment}", d.downloadAttachment)
	d.get("/approvals/{id}/attachments/{attachment}/text", d.showText)
	d.getFor(store.RoleApprover, "/approvals/{id}/edit", d.editDraftForm)
	d.postFor(store.RoleApprover, "/approvals/{id}/edit", d.editDraft)
	d.postFor(store.RoleApprover, "/approvals/{id}/approve", d.approve)
	d.postFor(store.RoleApprover, "/approvals/approve", d.approveMany)
	d.postFor(store.RoleApprover, "/approvals/{id}/reject", d.reject)
	d.postFor(store.RoleApprover, "/approvals/{id}/undo", d.undo)

	// The token is the credential, so no one needs to sign in. Mail scanners follow
	// links: only a form decides.
	d.open("GET "+approval.LinkPath+"{token}", d.linkedDraft)
	d.open("GET "+approval.LinkPath+"{token}/view", d.linkedFrame)
	d.open("POST "+approval.LinkPath+"{token}", d.decideLinked)

	d.get("/emails", d.listSent)
	d.get("/emails/{id}", d.showEmail)
	d.get("/emails/content/{id}/view", d.emailFrame)
	d.post("/emails/{id}/cancel", d.cancelEmail)
	d.post("/emails/{id}/retry", d.retrySent)

	d.get("/domains", d.listDomains)
	d.post("/domains", d.createDomain)
	d.get("/domains/{id}", d.showDomain)
	d.post("/domains/{id}/verify", d.verifyDomain)
	d.post("/domains/{id}/delete", d.deleteDomain)

	d.form("/webhooks", d.listWebhooks, d.createWebhook)
	d.getFor(store.RoleAdmin, "/webhooks/{id}", d.showWebhook)
	d.getFor(store.RoleAdmin, "/webhooks/{id}/secret", d.showWebhookSecret)
	d.post("/webhooks/{id}/test", d.testWebhook)
	d.post("/webhooks/{id}/active", d.switchWebhook)
	d.post("/webhooks/{id}/edit", d.editWebhook)
	d.post("/webhooks/{id}/replay", d.replayWebhook)
	d.post("/webhooks/{id}/rotate", d.rotateWebhook)
	d.post("/webhooks/{id}/delete", d.deleteWebhook)
	d.post("/webhooks/{id}/retry", d.retryFailed)
	d.getFor(store.RoleAdmin, "/webhooks/{id}/deliveries/{delivery}", d.showDelivery)
	d.post("/webhooks/{id}/deliveries/{delivery}/retry", d.retryDelivery)

	d.getFor(store.RoleAdmin, "/keys", d.listKeys)
	d.getFor(store.RoleAdmin, "/keys/new", d.newKey)
	d.post("/keys", d.createKey)
	d.getFor(store.RoleAdmin, "/keys/{id}", d.showKey)
	d.getFor(store.RoleAdmin, "/keys/{id}/secret", d.showSecret)
	d.post("/keys/{id}/limits", d.limitKey)
	d.post("/keys/{id}/revoke", d.revokeKey)

	if d.cfg.OAuth != nil {
		d.getFor(store.RoleAdmin, oauth.AuthorizePath, d.askConsent)
		d.post(oauth.AuthorizePath, d.consent)
	}

	d.get("/suppressions", d.listSuppressions)
	d.post("/suppressions", d.addSuppression)
	d.post("/suppressions/remove", d.removeSuppression)

	d.get("/lists", d.showLists)
	d.post("/lists", d.addEntry)
	d.post("/lists/{id}/delete", d.deleteEntry)
	d.getFor(store.RoleAdmin, "/quarantine", d.quarantine)
	d.post("/quarantine/release", d.releaseMessages)
	d.post("/quarantine/drop", d.dropMessages)

	d.get("/templates", d.listTemplates)
	d.form("/templates/new", d.newTemplate, d.createTemplate)
	d.get("/templates/{id}", d.showTemplate)
	d.post("/templates/{id}", d.saveTemplate)
	d.get("/templates/{id}/view", d.savedPreview)
	d.postFor(store.RoleViewer, "/templates/preview", d.previewTemplate)
	d.post("/templates/{id}/send", d.sendTemplate)
	d.post("/templates/{id}/delete", d.deleteTemplate)

	d.get("/contacts", d.listContacts)
	d.form("/contacts/new", d.newContact, d.createContact)
	d.get("/contacts/{id}", d.showContact)
	d.post("/contacts/{id}", d.saveContact)
	d.post("/contacts/{id}/delete", d.deleteContact)

	d.get("/logs", d.showRequests)
	d.get("/logs/events", d.showEvents)
	d.get("/logs/smtp", d.showRefusals)

	d.get("/settings", d.showSettings)
	d.postFor(store.RoleViewer, "/settings/theme", d.setTheme)
	d.postFor(store.RoleViewer, "/settings/password", d.changePassword)
	d.postFor(store.RoleViewer, "/settings/sessions", d.endSessions)
	d.form("/settings/health", d.showHealth, d.checkHealth)

	d.form("/settings/people", d.listPeople, d.invite)
	d.getFor(store.RoleAdmin, "/settings/people/link", d.showInvite)
	d.post("/settings/people/{id}/role", d.setRole)
	d.post("/settings/people/{id}/reset", d.resetPassword)
	d.post("/settings/people/{id}/remove", d.removePerson)
}

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, pattern := d.mux.Handler(r)
	switch {
	case strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "): // a program, maybe at /inboxes for /v1/inboxes
		d.cfg.API.ServeHTTP(w, r)
		return
	case pattern == "":
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

// form registers the page of a form and the form, for admins.
func (d *Dashboard) form(path string, show, submit func(*page) error) {
	d.getFor(store.RoleAdmin, path, show)
	d.post(path, submit)
}

// postFor is post for users whose role includes least.
func (d *Dashboard) postFor(least store.Role, path string, f func(*page) error) {
	d.mux.Handle("POST "+path, d.chain(d.signedIn(least, withForm(maxUpload, f))))
}

// open registers f for a pattern such as "GET /sign-in", without sign-in.
func (d *Dashboard) open(pattern string, f func(*page) error) {
	d.mux.Handle(pattern, d.chain(withForm(maxForm, f)))
}
