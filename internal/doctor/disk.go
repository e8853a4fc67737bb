package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/postroom/postroom/internal/disk"
)

const (
	littleRoom = 1 << 30  // bytes; less is a warning
	noRoom     = 64 << 20 // bytes; less, or less than the reserve, is a failure
	fewInodes  = 10_000
	slowSync   = 100 * time.Millisecond // each received message waits for one sync
)

// disk checks the free space of a directory and how long it takes to sync a small
// file.
func (v *visit) disk(folder string) func(context.Context) []Result {
	return func(context.Context) []Result {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			return one(warn("it does not exist yet").advise("`postroom serve` creates it"))
		}
		took, err := writeProbe(folder)
		if err != nil {
			return one(fail("cannot write: %v", err).
				advise("free disk space, and allow the user of Postroom to write there: chown -R USER %s", folder))
		}
		left, err := disk.Left(folder)
		if err != nil {
			return one(warn("cannot read the free space: %v", err))
		}
		out := one(room(left, took))
		if took > slowSync {
			out = append(out, warn("writing a small file takes %s, which delays every message", took.Round(time.Millisecond)).
				advise("use a local SSD that is not shared with heavy writers"))
		}
		return out
	}
}

func room(left disk.Space, took time.Duration) Result {
	const advice = "free disk space, or move POSTROOM_DATA to a larger disk: received mail is deferred (452) while less than the reserve is free"
	switch {
	case left.Free < max(noRoom, left.Reserve()):
		return fail("%s are free", size(left.Free)).advise(advice)
	case left.Inodes > 0 && left.Inodes < fewInodes:
		return warn("%s are free, but only %d inodes", size(left.Free), left.Inodes).advise("remove files, or use a file system with more inodes")
	case left.Free < littleRoom:
		return warn("%s are free", size(left.Free)).advise(advice)
	}
	return ok("%s are free, writing a small file takes %s", size(left.Free), took.Round(10*time.Microsecond))
}

// writeProbe writes, syncs and removes a file.
func writeProbe(folder string) (took time.Duration, err error) {
	f, err := os.CreateTemp(folder, ".doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	start := time.Now()
	_, err = f.Write(make([]byte, 4<<10))
	if err == nil {
		err = f.Sync()
	}
	took = time.Since(start)
	return took, errors.Join(err, f.Close())
}

// size formats a number of bytes.
func size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
