package main

import (
	"bufio"
	"context"
	"encoding/json"
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

// prose returns a text of about size bytes.
func prose(size int) string {
	const words = "the quick brown fox jumps over a lazy dog while no one at all is looking "
	var b strings.Builder
	for line := 0; b.Len() < size; line++ {
		n := line % len(words)
		b.WriteString(strings.TrimSpace(words[n:]+words[:n]) + "\n")
	}
	return b.String()
}

// postroom is the service under measurement.
type postroom struct {
	service *harness.Service
	label   string
	size    int
}

func (p *postroom) name() string       { return p.label }
func (p *postroom) cpu() time.Duration { return p.service.CPU() }
func (*postroom) canBatch() bool       { return true }

func (p *postroom) send(ctx context.Context, n, conns int, batches bool) error {
	text, err := json.Marshal(prose(p.size))
	if err != nil {
		return err
	}
	path, each, body := "/v1/emails", 1, func() string { return single(string(text)) }
	if batches {
		path, each, body = "/v1/emails/batch", batchSize, func() string { return batch(string(text)) }
	}
	return share(ctx, n/each, conns, p.service.Address, func(conn net.Conn, next func() bool) error {
		r := bufio.NewReader(conn)
		for next() {
			if err := post(conn, r, path, body()); err != nil {
				return err
			}
		}
		return nil
	})
}

// single returns a request for one email; text is JSON.
func single(text string) string {
	n := numbers.Add(1)
	return fmt.Sprintf(`{"from":%q,"to":%q,"subject":"Your receipt %d","text":%s}`, sender, recipient(n), n, text)
}

// batch returns a request for batchSize emails.
func batch(text string) string {
	to := make([]string, batchSize)
	for i := range to {
		n := numbers.Add(1)
		to[i] = fmt.Sprintf(`{"to":%q,"variables":{"number":"%d"}}`, recipient(n), n)
	}
	return fmt.Sprintf(`{"from":%q,"subject":"Your receipt {{number}}","text":%s,"recipients":[%s]}`, sender, text, strings.Join(to, ","))
}

// post makes a request on an open connection. An http.Client would cost several times
// as much processor time, on the cores of the service.
func post(conn net.Conn, r *bufio.Reader, path, body string) error {
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, harness.Key, len(body), body)
	if err != nil {
		return err
	}
	res, err := http.ReadResponse(r, nil)
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
