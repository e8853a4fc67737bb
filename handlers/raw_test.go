package handlers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	netsmtp "net/smtp"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/inbound"
)

// M11: every message received over SMTP can be downloaded byte for byte: the
// fixtures and the files in the folder POSTROOM_CORPUS. A message that SMTP
// cannot carry is refused, not changed.
func TestRawMessageIsByteEqual(t *testing.T) {
	t.Parallel()
	messages := fixtures(t, "../internal/mail/testdata/mail")
	if corpus := os.Getenv("POSTROOM_CORPUS"); corpus != "" {
		messages = append(messages, fixtures(t, corpus)...)
	}
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		mx := s.mx(t)
		taken := mx.sendAll(t, in.Name, messages)
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
	})
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

// mailServer is an SMTP receiver for the store of a server.
type mailServer struct{ addr string }

func (s *server) mx(t *testing.T) mailServer {
	t.Helper()
	receiver, err := inbound.NewReceiver(inbound.ReceiverConfig{Store: s.store, Domain: mailDomain, TempDir: t.TempDir(), Now: s.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := inbound.NewServer(inbound.ServerConfig{
		Receiver: receiver, Hostname: "mx.mail.example", MaxSize: 25 << 20, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Errorf("shut the SMTP server down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve SMTP: %v", err)
		}
	})
	return mailServer{listener.Addr().String()}
}

// sendAll sends the messages to the inbox, each with its number as the tag, and
// returns the accepted ones.
func (s mailServer) sendAll(t *testing.T, inbox string, messages []rawMail) (taken []rawMail) {
	t.Helper()
	for i, m := range messages {
		m.tag = fmt.Sprint(i)
		err := netsmtp.SendMail(s.addr, nil, "a@out.example", []string{inbox + "+" + m.tag + "@" + mailDomain}, m.raw)
		switch refused := (*textproto.Error)(nil); {
		case err == nil:
			taken = append(taken, m)
		case errors.As(err, &refused) && refused.Code/100 == 5 && (bytes.IndexByte(m.raw, 0) >= 0 || longestLine(m.raw) > 64<<10):
		default:
			t.Errorf("%s: %v", m.name, err)
		}
	}
	return taken
}

func longestLine(raw []byte) (longest int) {
	for line := range bytes.Lines(raw) {
		longest = max(longest, len(line))
	}
	return longest
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
