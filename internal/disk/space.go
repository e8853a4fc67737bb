package disk

import (
	"fmt"
	"syscall"
)

// Space is the space of a file system.
type Space struct {
	Size   uint64 // bytes
	Free   uint64 // available bytes
	Inodes uint64 // free ones; 0 if the file system does not count inodes
}

// Reserve is how many bytes of the file system stay free of received mail, so that the
// database and everything else can still write: 256 MiB, or a tenth of a small one.
func (s Space) Reserve() uint64 { return min(256<<20, s.Size/10) }

// Reserved returns an error that wraps syscall.ENOSPC if less than the reserve, divided by a
// number, is free in the file system of one of the folders. Folders whose free space is
// unknown are left out.
func Reserved(divisor uint64, folders ...string) error {
	for _, folder := range folders {
		left, err := Left(folder)
		if err == nil && left.Free < left.Reserve()/divisor {
			return fmt.Errorf("%s: %d MiB are free, and received mail leaves %d: %w",
				folder, left.Free>>20, left.Reserve()/divisor>>20, syscall.ENOSPC)
		}
	}
	return nil
}
