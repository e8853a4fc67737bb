package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"github.com/postroom/postroom/internal/web"
)

// announce prints the URLs of the node and, at the first start, the first key and
// the link that sets the dashboard password. They are never shown again, so
// failing to print them is an error.
func (n *node) announce(in install) error {
	if n.cfg.dev {
		in.setup = "" // nobody signs in
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Postroom %s is ready.\n\n", programVersion())
	base, _ := n.cfg.baseURL(n.httpAddr, n.httpsAddr)
	fmt.Fprintf(&b, "  API          %s\n", base)
	if n.httpsAddr != nil {
		fmt.Fprintf(&b, "  HTTPS        %s\n", n.httpsAddr)
	}
	if n.cfg.Dashboard {
		fmt.Fprintf(&b, "  Dashboard    %s\n", in.dashboardURL(base))
	}
	fmt.Fprintf(&b, "  SMTP         %s\n", n.smtpAddr)
	if n.submitAddr != nil {
		fmt.Fprintf(&b, "  Submission   %s\n", n.submitAddr)
	}
	if n.submitsAddr != nil {
		fmt.Fprintf(&b, "  Submissions  %s\n", n.submitsAddr)
	}
	if n.metricsAddr != nil {
		fmt.Fprintf(&b, "  Metrics      http://%s/metrics\n", n.metricsAddr)
	}
	fmt.Fprintf(&b, "  Mail domain  %s\n", n.cfg.MailDomain)
	if n.cfg.dev {
		b.WriteString("  Key          not needed on this machine and private networks\n\nEverything is in memory. Every address has an inbox, and no mail leaves.\n")
	} else {
		fmt.Fprintf(&b, "  Key          %s\n", in.keyLine())
	}
	if in.firstKey != "" {
		b.WriteString("\nThe key has full access and is shown only once. `postroom key create` creates others.\n")
	}
	if in.setup != "" {
		fmt.Fprintf(&b, "\nThe link sets the dashboard password of %s. It works once, for 24 hours. `postroom user reset %s` creates a new one.\n", firstUserName, firstUserName)
	}
	if _, err := fmt.Fprintln(n.out, b.String()); err != nil {
		return fmt.Errorf("print the summary: %w", err)
	}
	return nil
}

// logReady logs where the node can be reached, for those who only see its log.
func (n *node) logReady(ctx context.Context) {
	attrs := []slog.Attr{slog.String("version", programVersion())}
	for _, at := range []struct {
		name string
		addr net.Addr
	}{
		{"http", n.httpAddr}, {"https", n.httpsAddr}, {"smtp", n.smtpAddr}, {"submission", n.submitAddr}, {"submissions", n.submitsAddr}, {"metrics", n.metricsAddr},
	} {
		if at.addr != nil {
			attrs = append(attrs, slog.String(at.name, at.addr.String()))
		}
	}
	attrs = append(attrs, slog.String("mail_domain", string(n.cfg.MailDomain)))
	n.log.LogAttrs(ctx, slog.LevelInfo, "ready", attrs...)
}

// dashboardURL returns the URL of the dashboard. At the first start it contains
// the one-time link.
func (in install) dashboardURL(base *url.URL) string {
	if in.setup != "" {
		return web.SetupURL(base, in.setup)
	}
	return base.JoinPath("/").String()
}

// keyLine describes which key to use.
func (in install) keyLine() string {
	switch {
	case in.firstKey != "":
		return in.firstKey
	case in.isFirst:
		return "the one in " + envPrefix + "BOOTSTRAP_KEY"
	}
	return "as before (`postroom key create` creates another)"
}
