package main

import (
	"fmt"
	"strings"
)

// announce says where the node can be reached and, when it was made now, the
// first key. It is the only place that ever shows that key; a key that cannot
// be shown is an error.
func (n *node) announce(in install) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Postroom %s is ready.\n\n", programVersion())
	base, _ := n.cfg.baseURL(n.httpAddr, n.httpsAddr)
	fmt.Fprintf(&b, "  API          %s\n", base)
	if n.httpsAddr != nil {
		fmt.Fprintf(&b, "  HTTPS        %s\n", n.httpsAddr)
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
	if _, err := fmt.Fprintln(n.out, b.String()); err != nil {
		return fmt.Errorf("say what is ready: %w", err)
	}
	return nil
}

// keyLine says which key to use.
func (in install) keyLine() string {
	switch {
	case in.firstKey != "":
		return in.firstKey
	case in.isFirst:
		return "the one in " + envPrefix + "BOOTSTRAP_KEY"
	}
	return "as before (`postroom key create` makes another)"
}
