package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// submission is the service under measurement, which gets its messages over SMTP.
type submission struct {
	postroom
	address string
}

func (*submission) canBatch() bool { return false }

func (s *submission) send(ctx context.Context, n, conns int, _ bool) error {
	return submit(ctx, n, conns, s.size, s.address, harness.Key)
}

// submit submits n messages of about size bytes over SMTP. With a key it logs in first.
func submit(ctx context.Context, n, conns, size int, address, key string) error {
	text := strings.ReplaceAll(prose(size), "\n", "\r\n")
	return share(ctx, n, conns, address, func(conn net.Conn, next func() bool) error {
		r := bufio.NewReader(conn)
		err := errors.Join(replies(r, 1), command(conn, r, "EHLO bench.localhost\r\n", 1))
		if err == nil && key != "" {
			err = command(conn, r, "AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00api\x00"+key))+"\r\n", 1)
		}
		for err == nil && next() {
			n := numbers.Add(1)
			envelope := fmt.Sprintf("MAIL FROM:<bench@postroom.localhost>\r\nRCPT TO:<%s>\r\nDATA\r\n", recipient(n))
			if err = command(conn, r, envelope, 3); err == nil {
				err = command(conn, r, message(n, text), 1)
			}
		}
		return err
	})
}

// message returns the message that Postroom builds from the request, with dot-stuffing
// and the final dot.
func message(n int64, text string) string {
	return fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: Your receipt %d\r\nDate: %s\r\nMessage-ID: <%d.%d@postroom.localhost>\r\n"+
		"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n%s.\r\n",
		sender, recipient(n), n, time.Now().Format(time.RFC1123Z), n, time.Now().UnixNano(), text)
}

// command sends commands and reads their n replies.
func command(conn net.Conn, r *bufio.Reader, lines string, n int) error {
	if _, err := conn.Write([]byte(lines)); err != nil {
		return err
	}
	return replies(r, n)
}

// replies reads n replies and returns an error for a refusal.
func replies(r *bufio.Reader, n int) error {
	for n > 0 {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if len(line) < 4 || line[0] > '3' {
			return fmt.Errorf("refused: %s", strings.TrimSpace(line))
		}
		if line[3] == ' ' {
			n--
		}
	}
	return nil
}
