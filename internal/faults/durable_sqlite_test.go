package faults_test

import (
	"encoding/binary"
	"strings"
)

// walTrace follows the write-ahead log of an SQLite file. A transaction consists of
// the frames up to the one whose header gives the size of the database after it (bytes
// 4 to 7). It is durable when an fsync has ended that began after that frame was
// written. There is one writer.
type walTrace struct {
	marks     marks
	open      *transaction // whose frames are being written
	last      bool         // the frame that is being written ends it
	committed int
	synced    int           // transactions up to this one are kept
	syncing   map[*call]int // committed, when it began
}

func newWALTrace() *walTrace {
	return &walTrace{marks: marks{}, open: &transaction{}, syncing: map[*call]int{}}
}

// frameHeader is the size of a frame's header.
const frameHeader = `", 24, `

func (w *walTrace) take(e event) (fresh []string) {
	if !strings.HasSuffix(e.file, "-wal") {
		return nil
	}
	switch {
	case isSync(e.name) && !e.end:
		w.syncing[e.call] = w.committed
	case isSync(e.name):
		if e.result == 0 {
			w.synced = max(w.synced, w.syncing[e.call])
		}
		delete(w.syncing, e.call)
	case e.name != "pwrite64":
	case strings.Contains(e.args, frameHeader):
		header, err := unescape(e.text)
		w.last = err != nil || len(header) < 8 || binary.BigEndian.Uint32(header[4:]) != 0
	case !e.end:
		return w.marks.add(e.text, w.open)
	case w.last:
		w.committed++
		w.open.number = w.committed
		w.open, w.last = &transaction{}, false
	}
	return nil
}

func (w *walTrace) kept(marks []string) string {
	tx, why := w.marks.one(marks)
	switch {
	case why != "":
		return why
	case tx.number == 0:
		return "the transaction has not been written to its end"
	case tx.number > w.synced:
		return "no fsync of the log has ended since it was written"
	}
	return ""
}
