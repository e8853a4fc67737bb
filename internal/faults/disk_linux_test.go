package faults_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store/storetest"
)

const (
	small = 2 << 10   // lies in the row
	large = 300 << 10 // lies in the blob folder
)

// TestS22BlobFolderReadOnly makes the blob folder read-only under the service.
// Large mail is put off with 451 and 503 until it can be written again; small
// mail does not notice.
func TestS22BlobFolderReadOnly(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, e, "blobs", "32m")
			for range pick(2, 10) {
				d.want(small, 250, http.StatusCreated)
				d.want(large, 250, http.StatusCreated)
				d.remount(syscall.MS_RDONLY)
				d.want(small, 250, http.StatusCreated)
				d.want(large, 451, http.StatusServiceUnavailable)
				d.remount(0)
				d.want(large, 250, http.StatusCreated)
			}
			d.audit()
		})
	}
}

// TestS22DiskFull fills the disk under the service. Mail that does not fit is put
// off with 452 and 503 until there is room again.
func TestS22DiskFull(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, e, "", "64m")
			for range pick(2, 10) {
				d.want(small, 250, http.StatusCreated)
				d.want(large, 250, http.StatusCreated)
				d.in.settle() // mail that is under way gives room back
				d.fill()
				d.want(large, 452, http.StatusServiceUnavailable)
				if e == storetest.SQLite { // PostgreSQL has a disk of its own
					d.refuseSmall()
				}
				d.empty()
				d.recover()
			}
			d.audit()
		})
	}
}

// disk is an install of which a folder is a small disk of its own.
type disk struct {
	t        *testing.T
	in       *install
	mount    string // that folder
	from, to inbox

	received, sent *ledger
}

// newDisk serves an install whose folder of that name, in the data folder, has
// room for so much.
func newDisk(t *testing.T, e storetest.Engine, name, size string) *disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount the small disk that this test fills")
	}
	dir := filepath.Join(t.TempDir(), "data")
	d := &disk{t: t, mount: filepath.Join(dir, name), received: newLedger("received"), sent: newLedger("sent")}
	if err := os.MkdirAll(d.mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", d.mount, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.mount, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", d.mount, err)
		}
	})
	database := filepath.Join(dir, "postroom.db")
	if e == storetest.PostgreSQL {
		database = testpg.Schema(t)
	}
	d.in = installAt(t, e, dir, database)
	d.in.start()
	boxes := d.in.createInboxes("from", "to")
	d.from, d.to = boxes[0], boxes[1]
	return d
}

// remount changes how the small disk can be used.
func (d *disk) remount(flags uintptr) {
	d.t.Helper()
	if err := syscall.Mount("", d.mount, "", syscall.MS_REMOUNT|flags, ""); err != nil {
		d.t.Fatalf("remount: %v", err)
	}
}

func (d *disk) filler() string { return filepath.Join(d.mount, "filler") }

// fill takes all the room that is left.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.Create(d.filler())
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // the write tells
	for b := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatalf("fill the disk: %v", err)
	}
}

// empty gives the room back.
func (d *disk) empty() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatal(err)
	}
}

// want sends a mail of that size over SMTP and one over the API, which must be
// answered so.
func (d *disk) want(size, smtp, http int) {
	d.t.Helper()
	if got := d.deliver(size); got != smtp {
		d.t.Errorf("a mail of %d bytes is answered with %d, want %d", size, got, smtp)
	}
	if got := d.send(size); got != http {
		d.t.Errorf("a call with a mail of %d bytes is answered with %d, want %d", size, got, http)
	}
}

// deliver sends a mail over SMTP and returns the code of the answer.
func (d *disk) deliver(size int) int {
	d.t.Helper()
	c, err := dialSMTP(d.t.Context(), d.in.current().smtp)
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.close()
	m := newMail(d.received.next(), size, d.to.Address)
	o, err := c.send(m)
	d.received.write(m.id, entry{outcome: o, to: m.to, size: len(m.raw)})
	if no, ok := errors.AsType[*refusal](err); ok {
		return no.code
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return 250
}

// send sends a mail over the API and returns the status of the answer.
func (d *disk) send(size int) int {
	d.t.Helper()
	c := d.in.current().caller()
	defer c.close()
	id := d.sent.next()
	file := base64.StdEncoding.EncodeToString(newMail(id, size).raw)
	a, err := c.do(d.t.Context(), http.MethodPost, "/v1/inboxes/"+d.from.ID+"/messages", map[string]any{
		"to": d.to.Address, "subject": id, "text": bodyMark(id), "attachments": []any{map[string]string{"filename": "a.txt", "content": file}},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	e := entry{outcome: refused, to: []string{d.to.Address}}
	if a.status == http.StatusCreated {
		e.outcome = accepted
	}
	d.sent.write(id, e)
	return a.status
}

// refuseSmall sends small mail until the last page that was free in the log of
// the file is used up, and then once more.
func (d *disk) refuseSmall() {
	d.t.Helper()
	eventually(d.t, "small mail is refused too", func() bool { return d.deliver(small) == 452 })
	d.want(small, 452, http.StatusServiceUnavailable)
}

// recover waits until mail is taken again.
func (d *disk) recover() {
	d.t.Helper()
	began := time.Now()
	eventually(d.t, "mail is taken again", func() bool {
		return d.deliver(large) == 250 && d.send(large) == http.StatusCreated
	})
	if took := time.Since(began); took > mostToRecover {
		d.t.Errorf("it took %v to go on", took)
	}
}

// audit looks for all that was promised, by a service that was started again.
func (d *disk) audit() {
	d.t.Helper()
	d.in.stop()
	d.in.hurry(d.t.Context())
	d.in.start()
	d.in.auditBoth(d.sent, d.received, d.to, false)
}
