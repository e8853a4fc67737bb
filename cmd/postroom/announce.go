package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/postroom/postroom/internal/web"
)

// announce says where the node can be reached and, when they were made now and a
// person reads it, the first key and the link that sets the password of the
// dashboard. It is the only place that ever shows those; what cannot be shown is
// an error. What nobody reads on a terminal is kept somewhere, so that there it
// names the commands that make a key and a link. With a log of JSON it is one of
// its records then: a collector that gets both streams reads nothing else.
func (n *node) announce(ctx context.Context, in install) error {
	base, _ := n.cfg.baseURL(n.httpAddr, n.httpsAddr)
	if n.cfg.Log == "json" && !n.terminal {
		n.announceInLog(ctx, base, in)
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Postroom %s is ready.\n\n", programVersion())
	fmt.Fprintf(&b, "  API          %s\n", base)
	if n.httpsAddr != nil {
		fmt.Fprintf(&b, "  HTTPS        %s\n", n.httpsAddr)
	}
	if n.cfg.Dashboard {
		fmt.Fprintf(&b, "  Dashboard    %s\n", in.dashboardURL(base))
	}
	fmt.Fprintf(&b, "  SMTP         %s\n", n.smtpAddr)
	if n.metricsAddr != nil {
		fmt.Fprintf(&b, "  Metrics      http://%s/metrics\n", n.metricsAddr)
	}
	fmt.Fprintf(&b, "  Mail domain  %s\n", n.cfg.MailDomain)
	fmt.Fprintf(&b, "  Key          %s\n", in.keyLine())
	if in.firstKey != "" {
		b.WriteString("\nThe key reaches everything and is shown this once. `postroom key create` makes others.\n")
	}
	if in.setup != "" {
		fmt.Fprintf(&b, "\nThe link sets the password of %s for the dashboard, once, within a day. `%s` makes another.\n", firstUserName, resetFirstUser)
	} else if in.isFirst && bool(n.cfg.Dashboard) {
		fmt.Fprintf(&b, "\nNobody has a password for the dashboard yet: %s.\n", howToSignIn)
	}
	if _, err := fmt.Fprintln(n.out, b.String()); err != nil {
		return fmt.Errorf("say what is ready: %w", err)
	}
	return nil
}

const (
	resetFirstUser = "postroom user reset " + firstUserName
	howToSignIn    = "`" + resetFirstUser + "` makes the link that sets that of " + firstUserName
)

// announceInLog says the same in the log, where no secret may stand.
func (n *node) announceInLog(ctx context.Context, base *url.URL, in install) {
	facts := []any{"version", programVersion(), "api", base.String(), "smtp", n.smtpAddr.String(), "mail_domain", string(n.cfg.MailDomain)}
	if n.httpsAddr != nil {
		facts = append(facts, "https", n.httpsAddr.String())
	}
	if n.metricsAddr != nil {
		facts = append(facts, "metrics", "http://"+n.metricsAddr.String()+"/metrics")
	}
	if in.isFirst {
		facts = append(facts, "key", in.keyLine())
		if n.cfg.Dashboard {
			facts = append(facts, "dashboard", howToSignIn)
		}
	}
	n.log.InfoContext(ctx, "ready", facts...)
}

// dashboardURL is where to open the dashboard: with the one-time link at the
// first start.
func (in install) dashboardURL(base *url.URL) string {
	if in.setup != "" {
		return web.SetupURL(base, in.setup)
	}
	return base.JoinPath("/").String()
}

// keyLine says which key to use.
func (in install) keyLine() string {
	switch {
	case in.firstKey != "":
		return in.firstKey
	case in.isFirst && in.given:
		return "the one in " + envPrefix + "BOOTSTRAP_KEY"
	case in.isFirst:
		return "none yet: `postroom key create --name first` makes one"
	}
	return "as before (`postroom key create` makes another)"
}
