package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	cpu "github.com/postroom/postroom/bench/process"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// scaleVar sets the sizes of TestCostsDoNotGrowWithTheMailbox, separated by commas.
const scaleVar = "POSTROOM_TEST_SCALE"

// TestCostsDoNotGrowWithTheMailbox fills an inbox and the queue to several sizes. At each
// it measures the processor time of the service for a page, a message, a search, a wait
// and a received message, its memory and its disk. From the second size to the last, no
// operation may cost a third more.
func TestCostsDoNotGrowWithTheMailbox(t *testing.T) {
	sizes := pick([]int{100, 1_000, 5_000}, []int{1_000, 100_000, 1_000_000})
	if text := os.Getenv(scaleVar); text != "" {
		sizes = nil
		for _, s := range strings.Split(text, ",") {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, n)
		}
	}
	for _, e := range storetest.Engines(t) { //nolint:paralleltest // it measures processor time
		t.Run(string(e), func(t *testing.T) {
			c := &costs{t: t, in: newInstallation(t, e), rounds: pick(40, 200)}
			c.in.settings = []string{"POSTROOM_RELAY=smtp://127.0.0.1:1"}
			c.in.start()
			c.box = c.in.createInboxes("large")[0]
			c.in.stop()
			for _, size := range sizes {
				began := time.Now()
				c.grow(size)
				filled := time.Since(began)
				c.measure(size)
				t.Logf("%d messages and %d queued: filled in %s", size, size, seconds(filled))
			}
			c.report()
		})
	}
}

// costs are those of one installation as it grows.
type costs struct {
	t      *testing.T
	in     *installation
	box    inbox
	size   int
	rounds int
	rows   []costRow
}

// costRow is what was measured at one size.
type costRow struct {
	size                int
	own, resident, disk int // bytes
	operations          []operationCost
}

type operationCost struct {
	name     string
	cpu, p50 time.Duration
}

// grow adds messages and queued emails while the service is stopped. The emails are due in
// a day.
func (c *costs) grow(size int) {
	c.t.Helper()
	c.in.withStore(func(s *store.Store) {
		box := c.in.inboxOf(s, c.box)
		c.in.storeMany(s, box, size-c.size)
		c.in.index(s)
		const batch = 250
		for at := c.size; at < size; at += batch {
			var ns []*store.NewEmail
			for i := at; i < min(at+batch, size); i++ {
				ns = append(ns, storetest.NewEmail(box.AccountID, []string{fmt.Sprintf("to%d@outside.example", i)}))
			}
			if _, err := s.EnqueueBatch(c.t.Context(), ns, nil); err != nil {
				c.t.Fatal(err)
			}
		}
	})
	c.size = size
	db, err := c.in.openDatabase()
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // Exec reports errors
	for _, q := range []string{
		fmt.Sprintf(`UPDATE recipients SET next_attempt_at = %d WHERE status = 'queued'`, time.Now().Add(24*time.Hour).UnixMicro()),
		`ANALYZE`,
	} {
		if _, err := db.ExecContext(c.t.Context(), q); err != nil {
			c.t.Fatal(err)
		}
	}
}

// measure serves the installation and performs each operation.
func (c *costs) measure(size int) {
	t := c.t
	n := c.in.start()
	api := n.caller()
	defer api.close()
	smtp, err := dialSMTP(t.Context(), n.smtp)
	if err != nil {
		t.Fatal(err)
	}
	defer smtp.close()
	get := func(path string) error { return api.call(t.Context(), http.StatusOK, nil, http.MethodGet, path, nil) }
	of := "/v1/inboxes/" + c.box.ID + "/messages"
	var newest struct {
		Data []message `json:"data"`
	}
	if err := api.call(t.Context(), http.StatusOK, &newest, http.MethodGet, of+"?limit=50", nil); err != nil || len(newest.Data) != 50 {
		t.Fatalf("%d messages: %v", len(newest.Data), err)
	}
	sent := 0
	receive := func(int) error {
		sent++
		if sent%40 == 0 { // the server limits the messages of a connection
			smtp.close()
			if smtp, err = dialSMTP(t.Context(), n.smtp); err != nil {
				return err
			}
		}
		_, err := smtp.send(newMessage(fmt.Sprintf("cost-%d-%d-end", size, sent), small, c.box.Address))
		return err
	}
	c.idle(n)
	row := costRow{size: size}
	for _, op := range []struct {
		name string
		do   func(i int) error
	}{
		{"a page of 50", func(int) error { return get(of + "?limit=50") }},
		{"a message", func(i int) error { return get("/v1/messages/" + newest.Data[i%50].ID) }},
		{"a search", func(i int) error { return get(fmt.Sprintf("/v1/messages?limit=10&q=word%d", 40+i%40)) }},
		{"a received message", receive},
		{"a wait, and its message", func(int) error {
			// Without since, a wait reads all messages of the last minute: those of the fill.
			since := time.Now().UTC().Format(time.RFC3339)
			return c.wait(api, fmt.Sprintf("%s/wait?timeout=20&since=%s&subject=cost-%d-%d-end", of, since, size, sent+1), receive)
		}},
	} {
		if err := op.do(0); err != nil { // caches are filled
			t.Fatalf("%s: %v", op.name, err)
		}
		var took latencies
		before := cpu.CPU(n.cmd.Process.Pid)
		for i := range c.rounds {
			began := time.Now()
			if err := op.do(i); err != nil {
				t.Fatalf("%s: %v", op.name, err)
			}
			took = append(took, time.Since(began))
		}
		each := (cpu.CPU(n.cmd.Process.Pid) - before) / time.Duration(c.rounds)
		slices.Sort(took)
		row.operations = append(row.operations, operationCost{op.name, each, took.at(50)})
	}
	row.own, row.resident = statusBytes(t, n.cmd.Process.Pid, "RssAnon:"), residentBytes(t, n.cmd.Process.Pid)
	c.in.stop()
	row.disk = c.disk()
	c.rows = append(c.rows, row)
}

// idle waits until the service has done the work that the fill left to it, such as merging
// parts of the full-text index.
func (c *costs) idle(n *node) {
	c.t.Helper()
	last := cpu.CPU(n.cmd.Process.Pid)
	for range 300 {
		wait(c.t.Context(), time.Second)
		was := last
		if last = cpu.CPU(n.cmd.Process.Pid); last-was <= 20*time.Millisecond {
			return
		}
	}
	c.t.Log("the service is still busy")
}

// wait waits for a message that arrives meanwhile.
func (c *costs) wait(api *caller, path string, receive func(int) error) error {
	came := make(chan error, 1)
	ctx, cancel := context.WithTimeout(c.t.Context(), testTimeout)
	defer cancel()
	go func() {
		var w waitResult
		err := api.call(ctx, http.StatusOK, &w, http.MethodGet, path, nil)
		if err == nil && w.TimedOut {
			err = errors.New("nothing came")
		}
		came <- err
	}()
	if err := receive(0); err != nil {
		return err
	}
	return <-came
}

// disk returns the size of the database.
func (c *costs) disk() int {
	if c.in.engine == storetest.PostgreSQL {
		return c.in.count(`SELECT pg_database_size(current_database())`)
	}
	total := 0
	names, _ := filepath.Glob(c.in.database + "*")
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			total += int(info.Size())
		}
	}
	return total
}

// report logs the table, and compares the last two sizes.
func (c *costs) report() {
	t := c.t
	var text strings.Builder
	line := func(name string, of func(r costRow) string) {
		fmt.Fprintf(&text, "\n| %s |", name)
		for _, r := range c.rows {
			fmt.Fprintf(&text, " %s |", of(r))
		}
	}
	line("messages, and as many queued", func(r costRow) string { return strconv.Itoa(r.size) })
	text.WriteString("\n|---|" + strings.Repeat("---|", len(c.rows)))
	for i, op := range c.rows[0].operations {
		line(op.name, func(r costRow) string {
			o := r.operations[i]
			return fmt.Sprintf("%.2f ms CPU, p50 %.1f ms", float64(o.cpu)/1e6, float64(o.p50)/1e6)
		})
	}
	line("memory of its own, resident", func(r costRow) string { return fmt.Sprintf("%.0f, %.0f MiB", inMiB(r.own), inMiB(r.resident)) })
	line("database", func(r costRow) string { return fmt.Sprintf("%.0f MiB", inMiB(r.disk)) })
	t.Log(text.String())
	middle, last := c.rows[len(c.rows)-2], c.rows[len(c.rows)-1]
	slack := pick(3*time.Millisecond, time.Millisecond/2) // the system counts in ticks of 10 ms
	for i, op := range last.operations {
		if was := middle.operations[i].cpu; op.cpu > was*4/3+slack {
			t.Errorf("%s costs %v at %d messages and %v at %d", op.name, op.cpu, last.size, was, middle.size)
		}
	}
}
