package smtp

import (
	"errors"
	"strconv"
	"strings"
)

// chunks is a mail that comes by BDAT (RFC 3030).
type chunks struct {
	raw  *Spool
	sink *dataSink
}

// bdat answers BDAT. Its chunk comes whether the command is accepted or not.
// The connection ends with a command whose chunk cannot be told from the
// commands after it, and with one that is too large to read over.
func (s *session) bdat(cmd command) {
	size, last, ok := chunkSize(cmd.args)
	if !ok {
		s.hangUp(replyChunkSyntax)
		return
	}
	switch {
	case !s.open:
		s.skipChunk(size, replyMailFirst)
	case s.rcpts == 0:
		s.skipChunk(size, replyNoRecipients)
	case s.taken()+size > s.server.cfg.MaxSize:
		s.reset()
		s.skipChunk(size, replyTooLarge)
	default:
		s.takeChunk(size, last)
	}
}

// taken is how many bytes of the mail have come.
func (s *session) taken() int64 {
	if s.chunks == nil {
		return 0
	}
	return s.chunks.sink.size
}

// skipChunk reads over a chunk that is not wanted and says why.
func (s *session) skipChunk(size int64, r *Reply) {
	if size > overrun {
		s.hangUp(r)
		return
	}
	s.wire.pace = pace{} // of no mail: not what an earlier one left
	if err := s.wire.readChunk(size, func([]byte) error { return nil }); err != nil {
		s.lose(err)
		return
	}
	s.answer(r)
}

// takeChunk reads a chunk, and stores the mail when it is the last.
func (s *session) takeChunk(size int64, last bool) {
	if s.chunks == nil {
		raw := s.server.receiver.NewSpool()
		s.chunks = &chunks{raw: raw, sink: s.newSink(raw)}
	}
	var refused error
	sink := s.chunks.sink
	err := s.wire.readChunk(size, func(p []byte) error {
		if refused == nil {
			_, refused = sink.Write(p)
		}
		if errors.Is(refused, replyBareLineEnd) || errors.Is(refused, replyNUL) {
			return refused
		}
		return nil // what is wrong at our side is said when the chunk is over
	})
	if err == nil && refused == nil && last {
		refused = sink.finish()
	}
	var r *Reply
	switch {
	case err != nil && refused == nil:
		s.wire.unread, s.over = true, true
		r = cutShort(err)
	case refused != nil:
		s.over = s.over || err != nil || errors.Is(refused, replyBareLineEnd)
		s.wire.unread = s.wire.unread || s.over
		r = s.refusal("read data", refused)
	case !last:
		s.answer(replyChunk)
		return
	default:
		r = s.store(s.chunks.raw)
	}
	s.reset()
	s.answer(r)
}

// readChunk gives the next size bytes to use, in pieces, until it returns an
// error.
func (w *wire) readChunk(size int64, use func([]byte) error) error {
	w.pace.start()
	for size > 0 {
		if w.start == w.end {
			if err := w.fillData(); err != nil {
				return err
			}
		}
		p := w.pending()
		p = p[:min(int64(len(p)), size)]
		w.start += len(p)
		size -= int64(len(p))
		if err := use(p); err != nil {
			return err
		}
	}
	return nil
}

// chunkSize reads the arguments of BDAT. A chunk is smaller than 4 GiB.
func chunkSize(args string) (size int64, last, ok bool) {
	words := strings.Fields(args)
	if len(words) == 0 || len(words) > 2 {
		return 0, false, false
	}
	if last = len(words) == 2; last && !strings.EqualFold(words[1], "LAST") {
		return 0, false, false
	}
	n, err := strconv.ParseUint(words[0], 10, 32)
	if err != nil {
		return 0, false, false
	}
	return int64(n), last, true
}
