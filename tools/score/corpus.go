package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
)

// corpus is the folder with the messages and the expected results.
type corpus struct {
	folder string
	missed io.Writer
	misses int // calls of miss
}

func (c *corpus) has(file string) bool {
	_, err := os.Stat(filepath.Join(c.folder, file))
	return err == nil
}

// miss reports a record with a wrong result.
func (c *corpus) miss(id, format string, args ...any) {
	c.misses++
	_, _ = fmt.Fprintf(c.missed, "%s: %s\n", id, fmt.Sprintf(format, args...))
}

// maxRecord is the maximum length of a line in bytes.
const maxRecord = 64 << 20

// records reads a file with one JSON value per line.
func records[T any](c *corpus, file string) (list []T, err error) {
	f, err := os.Open(filepath.Join(c.folder, file))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxRecord)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("record %d: %w", len(list)+1, err)
		}
		list = append(list, v)
	}
	return list, lines.Err()
}

// mail reads a message as it would arrive over SMTP: without the mbox "From "
// line, and with CRLF line ends.
func (c *corpus) mail(file string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(c.folder, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	return onTheWire(raw), nil
}

func onTheWire(raw []byte) []byte {
	if bytes.HasPrefix(raw, []byte("From ")) {
		_, raw, _ = bytes.Cut(raw, []byte("\n"))
	}
	raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	raw = bytes.ReplaceAll(raw, []byte("\r"), []byte("\n"))
	return bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n"))
}

func parse(raw []byte) (*mime.Message, error) {
	return mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
}

// folded normalizes text for comparison: NFC, with single spaces.
func folded(s string) string { return strings.Join(strings.Fields(norm.NFC.String(s)), " ") }
