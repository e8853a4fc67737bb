package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// listeners are the open streams.
type listeners struct {
	mu      sync.Mutex
	conns   []net.Conn
	reading sync.WaitGroup
}

func (l *listeners) close() {
	l.mu.Lock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.reading.Wait()
}

// listen opens a stream for each inbox.
func (m *streams) listen(ctx context.Context) (*listeners, error) {
	keys := make([]string, (m.n+streamsPerKey-1)/streamsPerKey)
	for i := range keys {
		var made struct{ Key string }
		if err := m.api.post(ctx, "/v1/keys", map[string]any{"name": "listener", "scopes": []string{"read"}}, &made); err != nil {
			return nil, err
		}
		keys[i] = made.Key
	}
	m.heard.mu.Lock()
	m.heard.on, m.heard.events = true, map[string]times{}
	m.heard.mu.Unlock()
	l := &listeners{}
	err := m.each(ctx, func(ctx context.Context, i int) error {
		return l.open(ctx, m.running.Address, keys[i/streamsPerKey], m.inboxes[i], m.heard.hear)
	})
	if err != nil {
		l.close()
	}
	return l, err
}

// open opens one stream on a new connection and reads it until it is closed.
func (l *listeners) open(ctx context.Context, address, key, inbox string, hear func(id string, at time.Time)) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.conns = append(l.conns, conn)
	l.mu.Unlock()
	_, err = fmt.Fprintf(conn, "GET /v1/events/stream?inbox_id=%s&events=message.received HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n", inbox, key)
	if err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return fmt.Errorf("open a stream: %s", res.Status)
	}
	l.reading.Go(func() {
		defer func() { _ = res.Body.Close() }()
		lines := bufio.NewReader(res.Body)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			if _, rest, ok := bytes.Cut(line, []byte(`"object":"message","id":"`)); ok && bytes.HasPrefix(line, []byte("data: ")) {
				id, _, _ := bytes.Cut(rest, []byte(`"`))
				hear(string(id), time.Now())
			}
		}
	})
	return nil
}
