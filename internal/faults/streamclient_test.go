package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// streamed holds the fields of a streamed event that the tests read.
type streamed struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	InboxID string `json:"inbox_id"`
	Data    struct {
		ID      string `json:"id"`
		Subject string `json:"subject"`
	} `json:"data"`
}

// eventStream is one open event stream, on its own connection.
type eventStream struct {
	conn  net.Conn
	lines *bufio.Reader
}

// listen opens a stream. It gets the events after the call and, if last is not empty,
// those after the event last. The error is an *unwanted when the stream is refused.
func (n *node) listen(ctx context.Context, key, query, last string) (*eventStream, error) {
	conn, err := dial(ctx, strings.TrimPrefix(n.api, "http://"))
	if err != nil {
		return nil, err
	}
	request := fmt.Sprintf("GET /v1/events/stream%s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\nLast-Event-ID: %s\r\n\r\n", query, key, last)
	_, err = io.WriteString(conn, request)
	var res *http.Response
	if err == nil {
		res, err = http.ReadResponse(bufio.NewReader(conn), nil)
	}
	if err == nil {
		exchanges.Exchanged(request, res, nil)
	}
	if err == nil && res.StatusCode != http.StatusOK {
		err = &unwanted{"GET /v1/events/stream", response{status: res.StatusCode}}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &eventStream{conn, bufio.NewReader(res.Body)}, nil
}

// close closes the connection.
func (s *eventStream) close() { _ = s.conn.Close() }

// next returns the next event. io.EOF means that the server ended the stream cleanly.
func (s *eventStream) next() (e streamed, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return e, err
		}
		if gap := strings.HasPrefix(line, "event: stream.gap"); gap {
			return e, fmt.Errorf("the stream reports a gap")
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return e, json.Unmarshal([]byte(data), &e)
		}
	}
}
