package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncTree returns when all files in a folder, and their names, are on the disk. It syncs
// the file system once: to sync each file takes some milliseconds a file.
func SyncTree(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
