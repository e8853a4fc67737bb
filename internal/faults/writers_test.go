package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store/storetest"
)

// TestFiftyWritersNeverSeeABusySQLite runs fifty clients on one SQLite file, most of
// them writing, and other processes of the program beside the service. No client is
// gets an error that the database is busy, and the write-ahead log stays small. Row C8 of
// docs/testing.md.
func TestFiftyWritersNeverSeeABusySQLite(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, storetest.SQLite)
	in.start()
	w := &writers{in: in, boxes: in.createInboxes("box0", "box1", "box2", "box3"), done: map[string]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), pick(8*time.Second, 2*time.Minute))
	defer cancel()
	working, ctx := errgroup.WithContext(ctx)
	for kind, n := range map[string]int{
		"mail": 15, "large mail": 1, "inbox": 6, "patch": 6, "send": 8, "key": 4, "command": 1, "list": 4, "get": 3, "wait": 2,
	} {
		for i := range n {
			working.Go(func() error { return w.work(ctx, kind, i) })
		}
	}
	var most int64
	for ctx.Err() == nil {
		most = max(most, w.walSize())
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if err := working.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("the write-ahead log had %.1f MB at most; done: %v", float64(most)/1e6, w.done)
	if most > 100e6 {
		t.Errorf("the write-ahead log grew to %d bytes", most)
	}
	w.checkMail(t)
}

// writers records what the clients do, and how often.
type writers struct {
	in    *installation
	boxes []inbox

	mu   sync.Mutex
	done map[string]int // by kind
	last int
}

// next returns a new name, and counts the operation that it is for.
func (w *writers) next(kind string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[kind]++
	w.last++
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(kind, " ", "-"), w.last)
}

// work does one kind of operation until ctx ends. It completes the last one.
func (w *writers) work(ctx context.Context, kind string, i int) error {
	n, background := w.in.current(), w.in.t.Context()
	api := n.caller()
	defer api.close()
	smtp, err := dialSMTP(background, n.smtp)
	if err != nil {
		return err
	}
	defer smtp.close()
	for ctx.Err() == nil {
		if err := w.one(background, kind, w.boxes[i%len(w.boxes)], api, smtp); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func (w *writers) one(ctx context.Context, kind string, box inbox, api *caller, smtp *smtpClient) error {
	name, path := w.next(kind), "/v1/inboxes/"+box.ID
	switch kind {
	case "mail":
		_, err := smtp.send(newMessage(name, 4<<10, box.Address))
		return err
	case "large mail":
		_, err := smtp.send(newMessage(name, 300<<10, box.Address))
		return err
	case "inbox":
		return api.call(ctx, http.StatusCreated, nil, http.MethodPost, "/v1/inboxes", map[string]any{"name": name}, "Idempotency-Key", name)
	case "patch":
		return api.call(ctx, http.StatusOK, nil, http.MethodPatch, path, map[string]any{"display_name": name})
	case "send":
		body := map[string]any{"to": w.boxes[0].Address, "subject": name, "text": bodyMark(name)}
		return api.call(ctx, http.StatusCreated, nil, http.MethodPost, path+"/messages", body)
	case "key":
		return w.key(ctx, name, api)
	case "command":
		return w.command(ctx, name)
	case "list":
		return api.call(ctx, http.StatusOK, nil, http.MethodGet, path+"/messages?limit=100", nil)
	case "get":
		return w.get(ctx, api)
	}
	return api.call(ctx, http.StatusOK, nil, http.MethodGet, path+"/messages/wait?timeout=1&subject=never", nil)
}

// key makes a key and revokes it.
func (w *writers) key(ctx context.Context, name string, api *caller) error {
	var k struct {
		ID string `json:"id"`
	}
	if err := api.call(ctx, http.StatusCreated, &k, http.MethodPost, "/v1/keys", map[string]any{"name": name}); err != nil {
		return err
	}
	return api.call(ctx, http.StatusOK, nil, http.MethodDelete, "/v1/keys/"+k.ID, nil)
}

// command creates a key with a separate process on the same file, once a second.
func (w *writers) command(ctx context.Context, name string) error {
	if out, err := w.in.command(ctx, program, "key", "create", "--name", name).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return nil
}

// get reads the newest message.
func (w *writers) get(ctx context.Context, api *caller) error {
	var newest struct {
		Data []message `json:"data"`
	}
	err := api.call(ctx, http.StatusOK, &newest, http.MethodGet, "/v1/messages?limit=1", nil)
	if err != nil || len(newest.Data) == 0 {
		return err
	}
	return api.call(ctx, http.StatusOK, nil, http.MethodGet, "/v1/messages/"+newest.Data[0].ID, nil)
}

func (w *writers) walSize() int64 {
	info, err := os.Stat(w.in.database + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// checkMail counts the rows once all deliveries are done.
func (w *writers) checkMail(t *testing.T) {
	t.Helper()
	waittest.Until(t, "all accepted mail is delivered", func() bool {
		return w.in.count(`SELECT count(*) FROM recipients WHERE status = 'queued'`) == 0
	})
	for q, want := range map[string]int{
		`SELECT count(*) FROM messages WHERE direction = 'in'`:        w.done["mail"] + w.done["large mail"] + w.done["send"],
		`SELECT count(*) FROM messages WHERE direction = 'out'`:       w.done["send"],
		`SELECT count(*) FROM recipients WHERE status <> 'delivered'`: 0,
		`SELECT count(*) FROM inboxes`:                                len(w.boxes) + w.done["inbox"],
		`SELECT count(*) FROM api_keys`:                               1 + w.done["key"] + w.done["command"],
	} {
		if got := w.in.count(q); got != want {
			t.Errorf("%s: %d, want %d", q, got, want)
		}
	}
}
