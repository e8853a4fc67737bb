package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/postroom/postroom/internal/disk"
	"github.com/postroom/postroom/store"
)

const (
	someSkew = time.Second      // of the database's clock
	muchSkew = 30 * time.Second // leases and signatures fail

	littleRoom = 1 << 30  // bytes; less is a warning
	noRoom     = 64 << 20 // bytes; less, or less than the reserve, is a failure
	fewInodes  = 10_000
)

// database checks that the database can be opened, and says how fast it responds.
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
	return one(ok("%s %s, schema up to date, response time %s", in.Engine, in.Version, in.Latency.Round(10*time.Microsecond)))
}

// secret checks the installation secret and the database's own.
func (v *visit) secret(ctx context.Context) []Result {
	if v.cfg.Store == nil {
		return nil // reported by another check
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
		out = append(out, skipped("nothing to compare it with: it shows %s", time.Now().UTC().Format(time.RFC3339)))
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

// folderResult checks that a directory can be written to, and its free space.
func folderResult(folder string) Result {
	const advice = "free disk space, or move POSTROOM_DATA to a larger disk: received mail is deferred (452) while less than the reserve is free"
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return warn("it does not exist yet").advise("`postroom serve` creates it")
	}
	if err := writeProbe(folder); err != nil {
		return fail("cannot write: %v", err).
			advise("free disk space, and allow the user of Postroom to write there: chown -R USER %s", folder)
	}
	left, err := disk.Left(folder)
	switch {
	case err != nil:
		return warn("cannot read the free space: %v", err)
	case left.Free < max(noRoom, left.Reserve()):
		return fail("%s are free", size(left.Free)).advise(advice)
	case left.Inodes > 0 && left.Inodes < fewInodes:
		return warn("%s are free, but only %d inodes", size(left.Free), left.Inodes).advise("remove files, or use a file system with more inodes")
	case left.Free < littleRoom:
		return warn("%s are free", size(left.Free)).advise(advice)
	}
	return ok("%s are free", size(left.Free))
}

// writeProbe writes, syncs and removes a file.
func writeProbe(folder string) (err error) {
	f, err := os.CreateTemp(folder, ".doctor-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(make([]byte, 4<<10))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// size formats a number of bytes.
func size(n uint64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
