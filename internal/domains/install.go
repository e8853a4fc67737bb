package domains

import (
	"context"
	"slices"

	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/store"
)

// CheckInstall looks for those keys of the installation's own mail domain that wait to
// be published, and has the store draw what follows. Without a change of keys
// under way it asks the DNS nothing.
func (s *Domains) CheckInstall(ctx context.Context) error {
	domain := s.cfg.MailDomain
	keys, err := s.cfg.Store.InstallKeys(ctx, domain)
	if err != nil || !slices.ContainsFunc(keys, func(k store.DomainKey) bool { return !k.Signs() }) {
		return err
	}
	var records []dnsrec.Record
	var waiting []string
	for _, k := range keys {
		if k.Waits() {
			records = append(records, dnsrec.Key{Selector: k.Selector, Algorithm: k.Algorithm, Public: k.Public}.Record(domain))
			waiting = append(waiting, k.Selector)
		}
	}
	found := map[string]bool{}
	for i, f := range dnsrec.Check(ctx, s.cfg.Resolver, records) {
		if f.Finding == dnsrec.Found {
			found[waiting[i]] = true
			s.cfg.Log.InfoContext(ctx, "a new signing key is published", "domain", domain, "selector", waiting[i])
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.cfg.Store.RecordInstallKeys(ctx, domain, found)
}
