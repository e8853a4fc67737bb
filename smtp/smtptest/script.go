package smtptest

import (
	"bufio"
	"net"
	"strings"
	"sync"
	"testing"
)

// Actions that replace a reply.
const (
	// Hang stops replying and keeps the connection open.
	Hang = "\x00hang"
	// Close closes the connection.
	Close = "\x00close"
)

// Script is a server with scripted replies, SMTP or not.
type Script struct {
	// Banner is the greeting.
	Banner string
	// Reply returns the reply to a line. After a 354 reply to DATA, the lines up
	// to the dot are passed as one, separated by CRLF. Lines of a reply are
	// separated by "\n". Each connection calls it from one goroutine.
	Reply func(line string) string
}

// Serve runs the script on l for every connection.
func (s Script) Serve(t testing.TB, l net.Listener) {
	t.Helper()
	var mu sync.Mutex
	var running sync.WaitGroup
	conns := map[net.Conn]struct{}{}
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if conns == nil { // the test has ended
				_ = conn.Close()
			} else {
				conns[conn] = struct{}{}
			}
			mu.Unlock()
			running.Go(func() { s.talk(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for conn := range conns {
			_ = conn.Close()
		}
		conns = nil
		mu.Unlock()
		running.Wait()
	})
}

func (s Script) talk(conn net.Conn) {
	r := bufio.NewReader(conn)
	if !say(conn, s.Banner) {
		return
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		reply := s.Reply(line)
		if !say(conn, reply) {
			return
		}
		if line != "DATA" || !strings.HasPrefix(reply, "354") {
			continue
		}
		data, ok := readData(r)
		if !ok || !say(conn, s.Reply(data)) {
			return
		}
	}
}

// say sends a reply. It returns false when the dialog ends. A hanging connection
// is closed at the end of the test.
func say(conn net.Conn, reply string) bool {
	switch reply {
	case Hang:
		return false
	case Close:
		_ = conn.Close()
		return false
	}
	_, err := conn.Write([]byte(strings.ReplaceAll(reply, "\n", "\r\n") + "\r\n"))
	return err == nil
}

func readData(r *bufio.Reader) (string, bool) {
	var data strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", false
		}
		if line == ".\r\n" {
			return data.String(), true
		}
		data.WriteString(line)
	}
}

// Replies returns a function that selects the reply by verb: the first word of a
// line, or "." for the data. Other verbs get 250.
func Replies(replies map[string]string) func(line string) string {
	return func(line string) string {
		verb, _, _ := strings.Cut(line, " ")
		if strings.Contains(line, "\r\n") {
			verb = "."
		}
		if reply, ok := replies[strings.ToUpper(verb)]; ok {
			return reply
		}
		switch verb {
		case "DATA":
			return "354 go on"
		case "QUIT":
			return "221 bye"
		}
		return "250 ok"
	}
}
