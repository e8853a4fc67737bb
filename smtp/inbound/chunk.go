package inbound

import (
	"errors"
	"strconv"
	"strings"

	"github.com/postroom/postroom/smtp"
)

// chunks is a message that arrives by BDAT (RFC 3030). The guard reads the chunks
// and runs the library's DATA for the message as a whole, so that the library
// never sees part of one.
type chunks struct {
	raw   *Spool
	sink  *dataSink
	fault *smtp.Reply // why the message is refused; nil if it is complete
}

// bdat reads a chunk, which follows whether the command is accepted or not. It
// ends the connection when the size of the chunk is malformed, since commands
// cannot be distinguished from data then, and when the chunk is too large to skip.
func (g *guard) bdat(cmd command) {
	size, last, ok := chunkSize(cmd.args)
	s := g.session
	switch {
	case !ok:
		g.hangUp(replyChunkSyntax)
	case !s.open:
		g.skipChunk(size, replyMailFirst)
	case s.rcpts == 0:
		g.skipChunk(size, replyNoRecipients)
	default:
		g.takeChunk(size, last)
	}
}

// skipChunk reads a chunk outside of a message and refuses it.
func (g *guard) skipChunk(size int64, r *smtp.Reply) {
	g.wire.pace = pace{}
	if g.discardChunk(size, r) {
		g.reply(r)
	}
}

// discardChunk reads a chunk that is refused for r. It returns false when the
// connection ends instead.
func (g *guard) discardChunk(size int64, r *smtp.Reply) bool {
	if size > overrun {
		g.hangUp(r)
		return false
	}
	if err := g.wire.readChunk(size, func([]byte) error { return nil }); err != nil {
		g.lose(err)
		return false
	}
	return true
}

// takeChunk reads a chunk of the message. The last one, and one that is refused,
// end the message.
func (g *guard) takeChunk(size int64, last bool) {
	s := g.session
	if s.chunks == nil {
		raw := g.server.receiver.NewSpool()
		s.chunks = &chunks{raw: raw, sink: s.newSink(raw)}
	}
	if s.chunks.sink.size+size > g.server.cfg.MaxSize {
		if !g.discardChunk(size, replyTooLarge) {
			return
		}
		s.chunks.fault = replyTooLarge
	} else {
		s.chunks.fault = g.readChunk(size, last)
	}
	if s.chunks.fault == nil && !last {
		g.reply(replyChunk)
		return
	}
	g.silent = true
	g.pass("DATA", replyStored)
}

// readChunk moves a chunk from the connection to the message and returns what is
// wrong with it.
func (g *guard) readChunk(size int64, last bool) *smtp.Reply {
	sink := g.session.chunks.sink
	var refused error
	err := g.wire.readChunk(size, func(p []byte) error {
		if refused == nil {
			_, refused = sink.Write(p)
		}
		if errors.Is(refused, replyBareLineEnd) || errors.Is(refused, replyNUL) {
			return refused
		}
		return nil // our own faults are reported at the end of the chunk
	})
	if err == nil && refused == nil && last {
		refused = sink.finish()
	}
	if err != nil || errors.Is(refused, replyBareLineEnd) {
		g.over, g.wire.unread = true, true
		g.wire.inData = refused != nil
	}
	switch {
	case refused != nil:
		return g.session.refusal("read data", refused)
	case err != nil:
		return cutShort(err)
	}
	return nil
}

// endChunks stores the message if all its chunks are there. It returns nil when
// the message is stored.
func (s *session) endChunks() *smtp.Reply {
	if s.chunks.fault != nil {
		return s.chunks.fault
	}
	return s.store(s.chunks.raw)
}

// readChunk passes the next size bytes to use, in pieces, until use returns an
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
