//go:build linux || darwin

package disk

import "syscall"

// Left returns the free space of the file system that holds a folder.
func Left(folder string) (Space, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return Space{}, err
	}
	block := uint64(s.Bsize) //nolint:gosec,unconvert // a size is positive, and of another type on other systems
	out := Space{Size: s.Blocks * block, Free: s.Bavail * block}
	if s.Files > 0 {
		out.Inodes = s.Ffree
	}
	return out, nil
}
