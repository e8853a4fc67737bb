//go:build linux || darwin

package doctor

import "syscall"

func freeSpace(folder string) (space, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return space{}, err
	}
	out := space{free: s.Bavail * uint64(s.Bsize)} //nolint:gosec // a size of blocks is positive
	if s.Files > 0 {
		out.inodes = s.Ffree
	}
	return out, nil
}
