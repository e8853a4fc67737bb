package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/store"
)

const (
	slowDatabase = 50 * time.Millisecond // for a query that reads nothing
	someSkew     = time.Second           // of the database's clock
	muchSkew     = 30 * time.Second      // leases and signatures fail
)

// database checks that the database is reachable and how fast it responds.
func (v *visit) database(ctx context.Context) []Result {
	s, err := v.cfg.Store, v.cfg.StoreErr
	switch {
	case errors.Is(err, ErrNoDatabase):
		return one(warn("no database yet").advise("start `postroom serve` once, or set POSTROOM_DATA or POSTROOM_DATABASE"))
	case errors.Is(err, store.ErrSchemaOld) && v.cfg.Migrates:
		return one(warn("its schema is older than this program").advise("run postroom migrate, or start `postroom serve`"))
	case err != nil:
		return one(fail("%v", err).advise("check POSTROOM_DATABASE, and the server or the file; after an upgrade, run postroom migrate"))
	}
	in, err := s.Inspect(ctx)
	if err != nil {
		return one(fail("%v", err).advise("check the server, or the disk of the file"))
	}
	if in.Latency > slowDatabase {
		return one(warn("%s %s takes %s for an empty query", in.Engine, in.Version, in.Latency.Round(time.Millisecond)).
			advise("move it closer to this machine, or check its load"))
	}
	return one(ok("%s %s, schema up to date, response time %s", in.Engine, in.Version, in.Latency.Round(10*time.Microsecond)))
}

// secret checks the installation secret and the database's own.
func (v *visit) secret(ctx context.Context) []Result {
	if v.cfg.Store == nil {
		return unread()
	}
	if err := v.cfg.ProveSecret(ctx, v.cfg.Store); err != nil {
		return one(fail("%v", err).advise("restore the original secret from the backup: without it the encrypted data cannot be read"))
	}
	return one(ok("it matches the database"))
}

// clock compares the local clock with the database server's, and asks the system whether
// its clock is synchronized.
func (v *visit) clock(ctx context.Context) []Result {
	const keep = "synchronize the clock with NTP: timedatectl set-ntp true"
	var out []Result
	if s := v.cfg.Store; s != nil {
		if in, err := s.Inspect(ctx); err == nil && in.Ahead != nil {
			out = append(out, compared(in.Ahead.Abs(), keep+", on this machine and the database server"))
		}
		if until, err := s.DeletionsPaused(ctx); err == nil && until != nil {
			out = append(out, fail("it may be wrong: deletion is paused until %s", until.UTC().Format(time.RFC3339)).
				advise("if the clock is correct: postroom maintenance confirm"))
		}
	}
	synced, known := v.cfg.ClockSynced()
	switch {
	case known && synced:
		out = append(out, ok("the system synchronizes it"))
	case known:
		out = append(out, warn("the system does not synchronize it: DKIM signatures and TLS depend on it").advise(keep))
	case len(out) == 0:
		out = append(out, skipped("nothing to compare it with: it shows %s", v.cfg.Now().UTC().Format(time.RFC3339)))
	}
	return out
}

func compared(skew time.Duration, advice string) Result {
	by := skew.Round(time.Millisecond)
	switch {
	case skew > muchSkew:
		return fail("it differs by %s from the database: the node neither sends nor deletes mail", by).advise("%s", advice)
	case skew > someSkew:
		return warn("it differs by %s from the database", by).advise("%s", advice)
	}
	return ok("it differs by %s from the database", by)
}
