package faults_test

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// walTrace follows the write-ahead log of an SQLite file: a header, then frames, each a
// header and a page (https://sqlite.org/fileformat2.html#walformat). A transaction
// consists of the frames up to the one whose header gives the size of the database
// after it (bytes 4 to 7). It is durable when an fsync has ended that began after that
// frame was written. There is one writer. A call writes one frame or its half, or many.
type walTrace struct {
	marks     marks
	open      *transaction   // whose frames are being written
	ending    []*transaction // whose last frame the current call writes
	last      bool           // the frame that is being written ends the transaction
	committed int
	synced    int           // transactions up to this one are kept
	syncing   map[*call]int // committed, when it began
}

func newWALTrace() *walTrace {
	return &walTrace{marks: marks{}, open: &transaction{}, syncing: map[*call]int{}}
}

// The sizes of the parts of the log.
const (
	logHeader   = 32
	frameHeader = 24
	framePage   = 4096
)

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
	case !e.end:
		return w.write(e)
	default:
		for _, tx := range w.ending {
			w.committed++
			tx.number = w.committed
		}
		w.ending = nil
	}
	return nil
}

// write takes the frames that a call begins to write.
func (w *walTrace) write(e event) (fresh []string) {
	var size, at int
	after := strings.TrimLeft(e.args[strings.LastIndexByte(e.args, '"')+1:], ".") // dots follow what was cut off
	_, err := fmt.Sscanf(after, ", %d, %d", &size, &at)
	data, unreadable := unescape(e.text)
	if err != nil || unreadable != nil {
		return nil
	}
	take := func(n int) (part []byte) {
		part, data = data[:min(n, len(data))], data[min(n, len(data)):]
		at, size = at+n, size-n
		return part
	}
	if at < logHeader {
		take(logHeader - at)
	}
	for size > 0 {
		in := (at - logHeader) % (frameHeader + framePage)
		if in == 0 {
			header := take(frameHeader)
			w.last = len(header) == frameHeader && binary.BigEndian.Uint32(header[4:]) != 0
			continue
		}
		n := min(size, frameHeader+framePage-in)
		fresh = append(fresh, w.marks.add(string(take(n)), w.open)...)
		if w.last && in+n == frameHeader+framePage {
			w.ending = append(w.ending, w.open)
			w.open, w.last = &transaction{}, false
		}
	}
	return fresh
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
