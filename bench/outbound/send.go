package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

const (
	// batchSize is the number of recipients in a batch: the maximum.
	batchSize = 100

	sender = "Bench <bench@postroom.localhost>"
)

var numbers atomic.Int64 // makes all messages and recipients different

// recipient returns a different address for each n.
func recipient(n int64) string { return fmt.Sprintf("reader-%09d@d%d.example", n, n%100) }

// client is one connection to the service, for HTTP or SMTP.
type client struct {
	conn net.Conn
	r    *bufio.Reader   // of HTTP
	smtp *harness.Sender // the same connection
	text string          // of the messages: JSON for HTTP
}

// share sends n times over all connections.
func (t *target) share(ctx context.Context, n int, send func(*client) error) error {
	var sent atomic.Int64
	return errors.Join(ctx.Err(), harness.Parallel(*conns, func(int) error {
		c, err := t.connect(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = c.conn.Close() }()
		for err == nil && sent.Add(1) <= int64(n) && ctx.Err() == nil {
			err = send(c)
		}
		return err
	}))
}

func (t *target) connect(ctx context.Context) (*client, error) {
	if t.login {
		s, err := harness.NewSender(ctx, t.address)
		if err != nil {
			return nil, err
		}
		login := "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00api\x00"+harness.Key)) + "\r\n"
		return &client{conn: s, smtp: s, text: harness.Prose(*size, "\r\n")}, s.Say([]byte(login), 1)
	}
	conn, err := harness.Dial(ctx, t.address)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(harness.Prose(*size, "\n"))
	return &client{conn: conn, r: bufio.NewReader(conn), text: string(text)}, errors.Join(err, conn.SetDeadline(time.Now().Add(mostWait)))
}

// submitOne submits the message that Postroom builds from a request, with dot-stuffing
// and the final dot.
func submitOne(c *client) error {
	n := numbers.Add(1)
	envelope := fmt.Sprintf("MAIL FROM:<bench@postroom.localhost>\r\nRCPT TO:<%s>\r\nDATA\r\n", recipient(n))
	if err := c.smtp.Say([]byte(envelope), 3); err != nil {
		return err
	}
	return c.smtp.Say(fmt.Appendf(nil, "From: %s\r\nTo: %s\r\nSubject: Your receipt %d\r\nDate: %s\r\nMessage-ID: <%d.%d@postroom.localhost>\r\n"+
		"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n%s.\r\n",
		sender, recipient(n), n, time.Now().Format(time.RFC1123Z), n, time.Now().UnixNano(), c.text), 1)
}

func postOne(c *client) error {
	n := numbers.Add(1)
	return c.post("/v1/emails", fmt.Sprintf(`{"from":%q,"to":%q,"subject":"Your receipt %d","text":%s}`, sender, recipient(n), n, c.text))
}

func postBatch(c *client) error {
	to := make([]string, batchSize)
	for i := range to {
		n := numbers.Add(1)
		to[i] = fmt.Sprintf(`{"to":%q,"variables":{"number":"%d"}}`, recipient(n), n)
	}
	return c.post("/v1/emails/batch", fmt.Sprintf(`{"from":%q,"subject":"Your receipt {{number}}","text":%s,"recipients":[%s]}`, sender, c.text, strings.Join(to, ",")))
}

// post makes a request on an open connection. An http.Client would cost several times
// as much processor time, on the cores of the service.
func (c *client) post(path, body string) error {
	_, err := fmt.Fprintf(c.conn, "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, harness.Key, len(body), body)
	if err != nil {
		return err
	}
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s: %s: %s", path, res.Status, got)
	}
	return err
}
