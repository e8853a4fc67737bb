package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// writeRelease writes the part of a release that install.sh reads for this system, with a
// script in place of the program.
func writeRelease(t *testing.T, dir string) (archive string) {
	t.Helper()
	program := []byte("#!/bin/sh\necho postroom 1.2.3\n")
	archive = filepath.Join(dir, fmt.Sprintf("postroom_1.2.3_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH))
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(f)
	files := tar.NewWriter(zip)
	if err := files.WriteHeader(&tar.Header{Name: "postroom", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Write(program); err != nil {
		t.Fatal(err)
	}
	for _, end := range []func() error{files.Close, zip.Close, f.Close} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256([]byte(readFile(t, archive)))
	line := fmt.Sprintf("%x  %s\n", sum, filepath.Base(archive))
	if err := os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return archive
}

// The install script puts a program into place that runs, and nothing when the
// archive is not the released one or there is none for the system.
func TestInstallScript(t *testing.T) {
	t.Parallel()
	release, home := t.TempDir(), t.TempDir()
	archive := writeRelease(t, release)
	target := filepath.Join(home, "bin")
	install := func(release string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "../../install.sh")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "POSTROOM_RELEASE=" + release, "POSTROOM_INSTALL_DIR=" + target}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for range 2 { // the second time over the program that is there
		if out, err := install(release); err != nil || !strings.Contains(out, "Installed postroom ") || !strings.Contains(out, "Add "+target+" to your PATH.") {
			t.Fatalf("install: %v\n%s", err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(target, "postroom"), "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "postroom ") {
		t.Errorf("the installed program: %v %q", err, out)
	}

	if err := os.Remove(filepath.Join(target, "postroom")); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"http://127.0.0.1:1", "ftp://127.0.0.1:1"} {
		if out, err := install(address); err == nil || !strings.Contains(out, "use an https:// address or a folder") {
			t.Errorf("%s: %v\n%s", address, err, out)
		}
	}
	if err := os.Truncate(archive, 10); err != nil {
		t.Fatal(err)
	}
	for release, want := range map[string]string{
		release:     "does not match its checksum: expected ",
		home + "/x": "cannot read " + home + "/x/checksums.txt",
	} {
		if out, err := install(release); err == nil || !strings.Contains(out, want) {
			t.Errorf("want %q: %v\n%s", want, err, out)
		}
	}
	sums := strings.ReplaceAll(readFile(t, filepath.Join(release, "checksums.txt")), runtime.GOARCH, "pdp11")
	if err := os.WriteFile(filepath.Join(release, "checksums.txt"), []byte(sums), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := install(release); err == nil || !strings.Contains(out, "the release has no archive for "+runtime.GOOS) {
		t.Errorf("no archive: %v\n%s", err, out)
	}
	if left, err := os.ReadDir(target); err != nil || len(left) != 0 {
		t.Errorf("a refused installation left files behind: %v %v", left, err)
	}
}

// Where cosign or a signed-in gh is installed, the script verifies the signature of the
// release, and installs nothing when it is wrong.
func TestInstallScriptVerifiesTheSignature(t *testing.T) {
	t.Parallel()
	release := t.TempDir()
	writeRelease(t, release)
	if err := os.WriteFile(filepath.Join(release, "checksums.txt.sigstore.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tool, script, says, asked string }{
		{"cosign", "exit 0", "Verified the signature with cosign.", "verify-blob --bundle "},
		{"cosign", "echo no matching signature; exit 1", "the signature of the release is wrong: no matching signature", "release\\.yml@refs/tags/v"},
		{"gh", "exit 0", "Verified the provenance with gh.", "--repo postroom/postroom --signer-workflow postroom/postroom/.github/workflows/release.yml"},
		{"gh", `case $2 in status) ;; *) case $3 in --help) ;; *) echo no attestation; exit 1 ;; esac ;; esac`, "the provenance of the release is wrong: no attestation", "attestation verify "},
		{"gh", "exit 1", "Verified the checksum only", "auth status"},
	} {
		t.Run(tt.says, func(t *testing.T) {
			t.Parallel()
			home, tools := t.TempDir(), t.TempDir()
			script := "#!/bin/sh\necho \"$@\" >>" + home + "/asked\n" + tt.script + "\n"
			if err := os.WriteFile(filepath.Join(tools, tt.tool), []byte(script), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "../../install.sh")
			cmd.Env = []string{"PATH=" + tools + ":/usr/bin:/bin", "HOME=" + home, "POSTROOM_RELEASE=" + release, "POSTROOM_INSTALL_DIR=" + home + "/bin"}
			out, err := cmd.CombinedOutput()
			wrong := strings.Contains(tt.says, "wrong")
			if (err != nil) != wrong || !strings.Contains(string(out), tt.says) || !strings.Contains(readFile(t, home+"/asked"), tt.asked) {
				t.Errorf("%v: %s\n%s", err, out, readFile(t, home+"/asked"))
			}
			if _, err := os.Stat(home + "/bin/postroom"); (err != nil) != wrong {
				t.Errorf("installed: %v", err)
			}
		})
	}
}
