// Command peers receives the same messages with Postroom, with Mailpit if it is installed,
// and with a bare go-smtp server that discards them, in turn. It prints a table of the
// medians, and can write them as JSON.
//
//	go run ./bench/peers -json peers.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// The flags.
var (
	settings = harness.Flags()
	jsonFile = flag.String("json", "", "file to write the medians to, as JSON lines")
	rounds   = flag.Int("rounds", 3, "number of rounds; the medians are printed")
	duration = flag.Duration("d", 4*time.Second, "length of a round")
)

// shapes are how the messages are sent.
var shapes = []struct{ connections, bytes int }{{1, 4096}, {8, 4096}, {64, 4096}, {8, 51200}}

func main() {
	harness.Main("peers", func(ctx context.Context) error {
		return settings.With(ctx, func(p *harness.Place) error { return run(ctx, p) })
	})
}

func run(ctx context.Context, p *harness.Place) (err error) {
	dir, err := os.MkdirTemp("", "postroom-peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	smtp, err := harness.FreeAddress(ctx)
	if err != nil {
		return err
	}
	service, err := p.Start(ctx, "POSTROOM_SMTP="+smtp, "POSTROOM_SMTP_MAX_CONNS_PER_IP=100")
	if err != nil {
		return err
	}
	defer service.Stop()
	medians := filepath.Join(dir, "medians")
	args := []string{
		"run", "./bench/ingest", "-addr", smtp, "-api", "http://" + service.Address, "-key", harness.Key, "-baseline",
		"-rounds", strconv.Itoa(*rounds), "-d", duration.String(), "-json", medians,
	}
	mailpit, at, err := startMailpit(ctx, filepath.Join(dir, "mailpit.db"))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		fmt.Fprintln(os.Stderr, "peers: left out:", err)
	case err != nil:
		return err
	default:
		defer mailpit.Stop()
		args = append(args, "-peer", "Mailpit="+at)
	}
	for _, s := range shapes {
		cmd := exec.CommandContext(ctx, "go", append(args, "-c", strconv.Itoa(s.connections), "-size", strconv.Itoa(s.bytes))...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("measure: %w", err)
		}
	}
	raw, err := os.ReadFile(medians)
	if err == nil && *jsonFile != "" {
		err = os.WriteFile(*jsonFile, raw, 0o644)
	}
	return errors.Join(err, printTable(string(raw)))
}

// startMailpit starts Mailpit, and waits until it accepts connections. It does not sync its
// writes.
func startMailpit(ctx context.Context, database string) (p *harness.Process, at string, err error) {
	program, err := exec.LookPath("mailpit")
	if err != nil {
		return nil, "", err
	}
	page, err := harness.FreeAddress(ctx)
	if err != nil {
		return nil, "", err
	}
	if at, err = harness.FreeAddress(ctx); err != nil {
		return nil, "", err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), "MP_SMTP_BIND_ADDR="+at, "MP_UI_BIND_ADDR="+page, "MP_DATABASE="+database,
		"MP_MAX_MESSAGES=0", "MP_QUIET=true", "MP_DISABLE_VERSION_CHECK=true")
	if p, err = harness.StartProcess(cmd, false); err != nil {
		return nil, "", err
	}
	for range 300 {
		if conn, err := harness.Dial(ctx, at); err == nil {
			return p, at, conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.Stop()
	return nil, "", fmt.Errorf("mailpit does not listen at %s", at)
}

// printTable prints messages a second as Markdown, and how Postroom compares.
func printTable(lines string) error {
	var servers []string // Postroom first
	rates := map[string][]float64{}
	for d := json.NewDecoder(strings.NewReader(lines)); ; {
		var m harness.Ingested
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if !slices.Contains(servers, m.Server) {
			servers = append(servers, m.Server)
		}
		rates[m.Server] = append(rates[m.Server], m.Rate)
	}
	title := strings.NewReplacer("service", "Postroom", "baseline", "bare go-smtp")
	fmt.Println("| Messages a second | " + title.Replace(strings.Join(servers, " | ")) + " |")
	fmt.Println("|---" + strings.Repeat("|---", len(servers)) + "|")
	for i, s := range shapes {
		ours := rates[servers[0]][i]
		fmt.Printf("| %d KB, connections: %d | %.0f |", s.bytes>>10, s.connections, ours)
		for _, name := range servers[1:] {
			fmt.Printf(" %.0f (%.2f) |", rates[name][i], ours/rates[name][i])
		}
		fmt.Println()
	}
	fmt.Println("\nIn brackets: Postroom's rate divided by theirs.")
	return nil
}
