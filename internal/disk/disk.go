// Package disk makes changes to files durable.
package disk

import (
	"errors"
	"os"
)

// SyncDir returns when the names in a folder are on the disk: syncing a file does
// not sync its name.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
