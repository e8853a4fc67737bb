package web

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/store"
)

// System describes the installation.
type System struct {
	Version string
	// Settings are all settings with their effective values, without secrets.
	Settings []Setting
	// EmailRetention is how long the content of emails is kept.
	EmailRetention time.Duration
	// Check runs the checks of `postroom doctor`.
	Check func(context.Context) (doctor.Report, error)
}

// Setting is a setting of the installation.
type Setting struct{ Name, Value, Source string }

// themeCookie holds the theme that the browser shows: light or dark.
const themeCookie = "postroom_theme"

// theme returns the chosen theme, or "" for that of the system.
func (p *page) theme() string {
	c, err := p.r.Cookie(themeCookie)
	if err != nil || c.Value != "light" && c.Value != "dark" {
		return ""
	}
	return c.Value
}

const themeTTL = 365 * 24 * time.Hour

func (d *Dashboard) setTheme(p *page) error {
	p.setCookie(themeCookie, shortened(p.form.Get("theme"), 10), int(themeTTL.Seconds())) // others are the system's
	return p.done("/settings", "Theme saved.")
}

// ownSettings is the page of the own settings.
type ownSettings struct {
	Tabs     []messageTab
	Tab      string
	Name     string
	Role     store.Role
	Theme    string
	Shortest int
	Form     form // of the password
	Sessions []store.Session
	Own      string // the hash of this session
	Usage    *gen.Usage
}

// settingsTabs returns the pages of settings that the user may open.
func (p *page) settingsTabs() ([]messageTab, error) {
	tabs := []messageTab{{"", "You"}}
	if p.user.Role != store.RoleAdmin {
		return tabs, nil
	}
	tabs = append(tabs, messageTab{"people", "People"})
	first, err := p.operates()
	if first && p.d.cfg.System != nil {
		tabs = append(tabs, messageTab{"health", "Health"})
	}
	return tabs, err
}

// sessionsShown is how many sessions the page lists.
const sessionsShown = 20

func (d *Dashboard) showSettings(p *page) (err error) {
	v := ownSettings{Name: p.user.Name, Role: p.user.Role, Theme: p.theme(), Shortest: shortestPassword, Form: p.formOf(nil), Own: string(p.session())}
	if v.Tabs, err = p.settingsTabs(); err != nil {
		return err
	}
	if v.Sessions, err = d.store.Sessions(p.ctx(), p.user.Seq, sessionsShown); err != nil {
		return err
	}
	if v.Usage, err = d.api.GetUsage(p.ctx()); err != nil {
		return err
	}
	return p.show("settings", v)
}

// changePassword asks for the current password, because a session may be someone
// else's by now. Its attempts count as sign-ins.
func (d *Dashboard) changePassword(p *page) error {
	hash, err := d.changedPassword(p)
	if err != nil {
		return p.again(err, d.showSettings)
	}
	if err := d.store.ChangePassword(p.ctx(), p.user, hash, p.session()); err != nil {
		if errors.Is(err, store.ErrNotFound) { // changed in the meantime
			return p.goTo("/sign-in")
		}
		return err
	}
	d.log.InfoContext(p.ctx(), "password changed", "user_id", p.user.ID, "client", p.client())
	return p.done("/settings", "Password changed. Your other sessions are signed out.")
}

// changedPassword checks the current password and returns the hash of the new one.
func (d *Dashboard) changedPassword(p *page) (string, error) {
	if err := d.countSignIn(p, p.user.Name); err != nil {
		return "", err
	}
	ok, err := d.passwords.Matches(p.ctx(), p.user.Password, p.form.Get("current"))
	if err != nil {
		return "", err
	}
	if !ok {
		return "", fieldProblem("current", "Wrong password.")
	}
	return p.newPassword()
}

func (d *Dashboard) endSessions(p *page) error {
	n, err := d.store.EndOtherSessions(p.ctx(), p.user.Seq, p.session())
	if err != nil {
		return err
	}
	return p.done("/settings", plural(int(n), "other session is signed out.", "other sessions are signed out."))
}

// checkup is the latest result of the checks of the installation.
type checkup struct {
	running sync.Mutex // held while checks run
	last    atomic.Pointer[doctor.Report]
}

// healthView is the page of the installation's health.
type healthView struct {
	Tabs   []messageTab
	Tab    string
	System *System
	Store  store.Inspection
	Report *doctor.Report // nil before the first checks
}

// checkTones are the colours of the results of checks.
var checkTones = map[doctor.Status]string{doctor.OK: "good", doctor.Warn: "warn", doctor.Fail: "bad"}

// Tone returns the colour of a status.
func (healthView) Tone(s doctor.Status) string { return checkTones[s] }

// Statuses are the results of checks, the worst one first.
func (healthView) Statuses() []doctor.Status {
	return []doctor.Status{doctor.Fail, doctor.Warn, doctor.OK, doctor.Skipped}
}

// Retention is how long the content of emails is kept.
func (v healthView) Retention() string { return lasting(v.System.EmailRetention) }

// operator returns errNoPage unless the page describes the installation to this user.
func (p *page) operator() error {
	first, err := p.operates()
	if err == nil && (!first || p.d.cfg.System == nil) {
		return errNoPage
	}
	return err
}

func (d *Dashboard) showHealth(p *page) (err error) {
	if err = p.operator(); err != nil {
		return err
	}
	v := healthView{Tab: "health", System: d.cfg.System, Report: d.checkup.last.Load()}
	if v.Tabs, err = p.settingsTabs(); err != nil {
		return err
	}
	if v.Store, err = d.store.Inspect(p.ctx()); err != nil {
		return err
	}
	return p.show("health", v)
}

// checkHealth runs the checks, which takes up to doctor.Timeout. Only one run at a time
// bounds what it asks of other servers.
func (d *Dashboard) checkHealth(p *page) error {
	if err := p.operator(); err != nil {
		return err
	}
	const to = "/settings/health"
	if !d.checkup.running.TryLock() {
		return p.failed(to, "The checks are running. Reload the page in a few seconds.")
	}
	defer d.checkup.running.Unlock()
	report, err := d.cfg.System.Check(p.ctx())
	if err != nil {
		return err
	}
	d.checkup.last.Store(&report)
	return p.goTo(to)
}
