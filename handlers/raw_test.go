package handlers_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	netsmtp "net/smtp"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// M11: every message received over SMTP can be downloaded byte for byte: the
// fixtures and the files in the folder POSTROOM_CORPUS. A message that SMTP
// cannot carry is refused, not changed.
func TestRawMessageIsByteEqual(t *testing.T) {
	messages := fixtures(t, "../internal/mail/testdata/mail")
	if corpus := os.Getenv("POSTROOM_CORPUS"); corpus != "" {
		messages = append(messages, fixtures(t, corpus)...)
	}
	s := serve(t)
	in := s.newInbox(t)
	taken := sendAll(t, s.smtp(t, nil), in.Name, messages)
	ids := s.byTag(t, "/v1/inboxes/"+in.ID+"/messages?limit=100")
	if len(ids) != len(taken) {
		t.Errorf("%d messages received, %d accepted", len(ids), len(taken))
	}
	for i, m := range taken {
		if i%50 == 0 {
			s.clock.Add(time.Minute) // download links have a rate limit
		}
		link := s.do(t, http.MethodGet, "/v1/messages/"+ids[m.tag]+"/raw", "").want(t, http.StatusFound).header.Get("Location")
		got := s.do(t, http.MethodGet, s.linked(t, link), "", as("")).want(t, http.StatusOK).body
		if !bytes.Equal(got, m.raw) {
			t.Errorf("%s: sent %d bytes, got %d different ones", m.name, len(m.raw), len(got))
		}
	}
	t.Logf("%d of %d messages sent and received, the others refused", len(taken), len(messages))
}

type rawMail struct {
	name, tag string
	raw       []byte
}

// fixtures reads all files of a folder that may be messages, with CRLF line
// endings.
func fixtures(t *testing.T, folder string) (messages []rawMail) {
	t.Helper()
	files := os.DirFS(folder)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".eml", ".raw", ".txt", ".msg", ""}, filepath.Ext(path)) {
			return err
		}
		raw, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(raw, []byte("From ")) { // from a mailbox file
			_, raw, _ = bytes.Cut(raw, []byte("\n"))
		}
		text := strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n").Replace(string(raw))
		if !strings.HasSuffix(text, "\r\n") {
			text += "\r\n" // SMTP ends each line
		}
		messages = append(messages, rawMail{name: filepath.Base(path), raw: []byte(text)})
		return nil
	})
	if err != nil || len(messages) == 0 {
		t.Fatalf("%d messages in %s, %v", len(messages), folder, err)
	}
	return messages
}

// sendAll sends the messages to the inbox, each with its number as the tag, and
// returns the accepted ones.
func sendAll(t *testing.T, addr, inbox string, messages []rawMail) (taken []rawMail) {
	t.Helper()
	for i, m := range messages {
		m.tag = fmt.Sprint(i)
		err := netsmtp.SendMail(addr, nil, "a@out.example", []string{inbox + "+" + m.tag + "@" + mailDomain}, m.raw)
		switch refused := (*textproto.Error)(nil); {
		case err == nil:
			taken = append(taken, m)
		case errors.As(err, &refused) && refused.Code/100 == 5 && unfit(m.raw):
		default:
			t.Errorf("%s: %v", m.name, err)
		}
	}
	return taken
}

// unfit reports whether the server refuses a message: for a NUL, for a line over 64 KB, or for
// its size.
func unfit(raw []byte) bool {
	longest := 0
	for line := range bytes.Lines(raw) {
		longest = max(longest, len(line))
	}
	return bytes.IndexByte(raw, 0) >= 0 || longest > 64<<10 || len(raw) > 1<<20
}

// byTag returns the ids of the listed messages by tag.
func (s *server) byTag(t *testing.T, path string) map[string]string {
	t.Helper()
	ids := map[string]string{}
	next := path
	for next != "" {
		res := s.do(t, http.MethodGet, next, "").want(t, http.StatusOK)
		tags := res.strs(t, "data", "tag")
		for i, id := range res.strs(t, "data", "id") {
			ids[tags[i]] = id
		}
		next = ""
		if cursor, more := res.at(t, "cursor").(string); more {
			next = path + "&cursor=" + cursor
		}
	}
	return ids
}
