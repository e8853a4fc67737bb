package inbound

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/postroom/postroom/internal/mail"
)

var maxHeader = int64(mail.DefaultLimits().HeaderBytes)

var receivedName = []byte("received:")

// countReceived counts the Received fields in the header of the message in r, and
// stops above the limit. Empty lines before the header do not end it, as in
// mime.Parse. A header is never longer than maxHeader: mime.Parse refuses it.
func countReceived(r io.Reader) (n int, err error) {
	br := bufio.NewReader(io.LimitReader(r, maxHeader))
	begins, inHeader := true, false // the piece starts a line; a field has been seen
	for n <= maxReceived {
		piece, err := br.ReadSlice('\n')
		if begins && len(piece) > 0 {
			blank := len(bytes.TrimRight(piece, "\r\n")) == 0
			if blank && inHeader {
				return n, nil
			}
			inHeader = inHeader || !blank
			if len(piece) >= len(receivedName) && bytes.EqualFold(piece[:len(receivedName)], receivedName) {
				n++
			}
		}
		begins = err == nil
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return n, err
		}
	}
	return n, nil
}
