package smtptest

import (
	"bufio"
	"net"
	"strings"
	"sync"
	"testing"
)

// What a script can do instead of answering.
const (
	// Hang says nothing more and leaves the connection open.
	Hang = "\x00hang"
	// Close closes the connection.
	Close = "\x00close"
)

// Script is a server that answers what it is told to, whether that is SMTP or
// not.
type Script struct {
	// Banner is what it says first.
	Banner string
	// Reply is asked for the answer to each line. After it answered DATA with
	// 354, the lines up to the dot are one line, with CRLF between them. Lines of
	// an answer are separated by "\n". It is called by one goroutine for each
	// connection.
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
			conns[conn] = struct{}{}
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
		answer := s.Reply(line)
		if !say(conn, answer) {
			return
		}
		if line != "DATA" || !strings.HasPrefix(answer, "354") {
			continue
		}
		data, ok := readData(r)
		if !ok || !say(conn, s.Reply(data)) {
			return
		}
	}
}

// say returns false when there is nothing more to talk about. A connection that
// hangs is closed at the end of the test.
func say(conn net.Conn, answer string) bool {
	switch answer {
	case Hang:
		return false
	case Close:
		_ = conn.Close()
		return false
	}
	_, err := conn.Write([]byte(strings.ReplaceAll(answer, "\n", "\r\n") + "\r\n"))
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

// Replies answers by the verb of a line: the first word, or "." for the data.
// Verbs that are not there get 250.
func Replies(answers map[string]string) func(line string) string {
	return func(line string) string {
		verb, _, _ := strings.Cut(line, " ")
		if strings.Contains(line, "\r\n") {
			verb = "."
		}
		if answer, ok := answers[strings.ToUpper(verb)]; ok {
			return answer
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
