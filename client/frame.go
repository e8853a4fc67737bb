package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// maxFrame is more than an event takes: their bodies are cut at 256 KB.
const maxFrame = 4 << 20

// frame is one event of a stream of server-sent events.
type frame struct {
	id, event string
	data      []byte
}

// frameReader reads server-sent events (HTML Living Standard, 9.2.6).
type frameReader struct {
	lines *bufio.Scanner
	heard func()        // called at each line, comments too
	retry time.Duration // the last that was said, or 0
}

func newFrameReader(r io.Reader, heard func()) *frameReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxFrame)
	return &frameReader{lines: lines, heard: heard}
}

// next returns the next event that has data. One that is not ended by an empty
// line is not an event. The end is an io.EOF.
func (r *frameReader) next() (frame, error) {
	var f frame
	size := 0
	for r.lines.Scan() {
		r.heard()
		line := r.lines.Bytes()
		if len(line) == 0 {
			if len(f.data) > 0 {
				return f, nil
			}
			f, size = frame{}, 0
			continue
		}
		if size += len(line); size > maxFrame {
			return frame{}, errFrame
		}
		r.field(&f, line)
	}
	if err := r.lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return frame{}, errFrame
	} else if err != nil {
		return frame{}, err
	}
	return frame{}, io.EOF
}

var errFrame = fmt.Errorf("%w: it is longer than any", errBadEvent)

// field reads one line into f. Those that it does not know are left out, and so
// are comments.
func (r *frameReader) field(f *frame, line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		f.id = string(value)
	case "event":
		f.event = string(value)
	case "data":
		if f.data != nil {
			f.data = append(f.data, '\n')
		}
		f.data = append(f.data, value...)
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			r.retry = time.Duration(ms) * time.Millisecond
		}
	}
}
