package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestDevServesOtherHosts runs `postroom dev` in a network namespace with two other hosts:
// one on a private network, which needs no key, and one with a public address, which is
// refused. It needs root, `ip` and `curl`.
func TestDevServesOtherHosts(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("postroom%d", os.Getpid())
	server, private, public := name+"s", name+"a", name+"b"
	for _, ns := range []string{server, private, public} {
		if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
			t.Skipf("no network namespaces: %v %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	}
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %v %s", strings.Join(args, " "), err, out)
		}
	}
	for i, link := range []struct{ ns, net string }{{private, "10.77.0."}, {public, "203.0.113."}} {
		here, there := fmt.Sprintf("pr%da%d", os.Getpid()%100000, i), fmt.Sprintf("pr%db%d", os.Getpid()%100000, i)
		ip("link", "add", here, "netns", server, "type", "veth", "peer", "name", there, "netns", link.ns)
		for _, end := range []struct{ ns, device, address string }{{server, here, "1/24"}, {link.ns, there, "2/24"}} {
			ip("-n", end.ns, "addr", "add", link.net+end.address, "dev", end.device)
			ip("-n", end.ns, "link", "set", end.device, "up")
		}
	}
	ip("-n", server, "link", "set", "lo", "up")
	run := func(ns string, args ...string) (string, error) {
		out, err := exec.Command("ip", append([]string{"netns", "exec", ns}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := run(server, "true"); err != nil {
		t.Skipf("no process in a network namespace: %v %s", err, out)
	}
	program := command(t, t.TempDir(), []string{"POSTROOM_DEV_LISTEN=all"}, "dev")
	program.Args = append([]string{"ip", "netns", "exec", server, program.Path}, program.Args[1:]...)
	path, err := exec.LookPath("ip")
	if err != nil {
		t.Skip(err)
	}
	binary := program.Path
	program.Path = path
	begin(t, program)

	message := t.TempDir() + "/message"
	if err := os.WriteFile(message, []byte("From: a@shop.example\nSubject: Hi\n\nYour code is 482913.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	send := func(ns, host string) (string, error) {
		return run(ns, "curl", "-sSv", "--max-time", "10", "smtp://"+host+":1025", "--mail-from", "a@shop.example", "--mail-rcpt", "x@name.test", "-T", message)
	}
	if out, err := send(private, "10.77.0.1"); err != nil {
		t.Errorf("a private host sends: %v %s", err, out)
	}
	began := time.Now()
	code, err := run(private, binary, "wait", "x@name.test", "--code", "--again", "--server", "http://10.77.0.1:8025", "--key", "dev", "--timeout", "20s")
	if err != nil || strings.TrimSpace(code) != "482913" {
		t.Errorf("a private host reads after %v: %v %s", time.Since(began), err, code)
	}
	// On the host of the server, commands find it without settings, and so does the health
	// check of the image, whose environment fits both `serve` and `dev`.
	bare := []string{"env", "-i", "HOME=" + t.TempDir()}
	code, err = run(server, append(bare, binary, "wait", "x@name.test", "--code", "--since", "1h")...)
	if err != nil || strings.TrimSpace(code) != "482913" {
		t.Errorf("without settings: %v %s", err, code)
	}
	if out, err := run(server, append(bare, "POSTROOM_HTTP=:8080", "POSTROOM_DEV_LISTEN=all", binary, "health")...); err != nil {
		t.Errorf("health: %v %s", err, out)
	}
	if out, err := send(public, "203.0.113.1"); err == nil || !strings.Contains(out, "554 5.7.1 postroom dev serves private networks only") {
		t.Errorf("a public host sends: %v %s", err, out)
	}
	for _, path := range []string{"/v1/inboxes", "/", "/health"} {
		out, err := run(public, "curl", "-sS", "--max-time", "10", "-w", " %{http_code}", "-H", "Host: localhost", "http://203.0.113.1:8025"+path)
		if err != nil || !strings.Contains(out, "add 203.0.113.2 to POSTROOM_DEV_HOSTS") || !strings.HasSuffix(out, " 403") {
			t.Errorf("a public host reads %s: %v %s", path, err, out)
		}
	}
}
