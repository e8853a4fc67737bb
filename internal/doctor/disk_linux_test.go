package doctor_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/store/storetest"
)

// TestFaultsOfTheDisk has small disks of its own.
func TestFaultsOfTheDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount the small disks of this test")
	}
	fill := func(t *testing.T, dir string) {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, "ballast"))
		if err != nil {
			t.Fatal(err)
		}
		block := make([]byte, 64<<10)
		for err == nil {
			_, err = f.Write(block)
		}
		_ = f.Close() // it is full
	}
	tests := []struct {
		name, options string
		flags         uintptr
		spoil         func(t *testing.T, dir string)
		status        doctor.Status
		saw, advice   string
	}{
		{"full", "size=2m", 0, fill, doctor.Fail, "no space left", "free disk space"},
		{"nearly full", "size=8m", 0, nil, doctor.Fail, "8.0 MiB are free", "free disk space"},
		{"rather full", "size=500m", 0, nil, doctor.Warn, "500.0 MiB are free", "free disk space"},
		{"few inodes", "size=4g,nr_inodes=100", 0, nil, doctor.Warn, "inodes", "inodes"},
		{"read-only", "size=8m", syscall.MS_RDONLY, nil, doctor.Fail, "read-only", "chown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", tt.flags, tt.options); err != nil {
				t.Skipf("no disk can be mounted here: %v", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
			if tt.spoil != nil {
				tt.spoil(t, dir)
			}
			w := newWorld(t, storetest.SQLite)
			w.cfg.Folders = []string{dir}
			wantResult(t, w.run(t), "disk", tt.status, tt.saw, tt.advice)
		})
	}
}
