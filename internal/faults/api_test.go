package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// caller is one client of the HTTP API, with a connection of its own.
type caller struct {
	base string
	http *http.Client
}

func (n *node) caller() *caller {
	return &caller{
		base: n.api,
		http: &http.Client{
			Transport: &http.Transport{DisableCompression: true},
			Timeout:   patience,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
}

func (c *caller) close() { c.http.CloseIdleConnections() }

// answer is a whole answer of the API.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// unwanted is an answer with another status than was to be had.
type unwanted struct {
	call string
	answer
}

func (u *unwanted) Error() string { return fmt.Sprintf("%s: %d %s", u.call, u.status, u.body) }

// do calls the API. header are names and values in turn. An error means that no
// whole answer came.
func (c *caller) do(ctx context.Context, method, path string, body any, header ...string) (answer, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+firstKey)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, b}, err
}

// call is do for calls that must be answered with that status; out takes the
// body. The error is an *unwanted when they are not.
func (c *caller) call(ctx context.Context, want int, out any, method, path string, body any, header ...string) error {
	a, err := c.do(ctx, method, path, body, header...)
	if err != nil {
		return err
	}
	if a.status != want {
		return &unwanted{method + " " + path, a}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(a.body, out)
}

// inbox is what the tests read of an inbox.
type inbox struct {
	ID      string `json:"id"`
	Address string `json:"address"`
}

// message is what the tests read of a message.
type message struct {
	ID       string    `json:"id"`
	InboxID  string    `json:"inbox_id"`
	Status   string    `json:"status"`
	Subject  string    `json:"subject"`
	Text     string    `json:"text"`
	HeaderID string    `json:"rfc_message_id"`
	Size     int       `json:"size"`
	Received time.Time `json:"received_at"`

	Recipients []recipient `json:"recipients"`
}

type recipient struct {
	Email  string `json:"email"`
	Status string `json:"status"`
}

// waiting says whether a recipient is still to be delivered to.
func (m message) waiting() bool {
	return slices.ContainsFunc(m.Recipients, func(r recipient) bool { return r.Status == "queued" })
}

type waitResult struct {
	TimedOut bool     `json:"timed_out"`
	Message  *message `json:"message"`
	WaitedMs int      `json:"waited_ms"`
}

func (c *caller) createInbox(ctx context.Context, name string) (inbox, error) {
	var in inbox
	err := c.call(ctx, http.StatusCreated, &in, http.MethodPost, "/v1/inboxes", map[string]any{"name": name})
	return in, err
}

// messages lists all messages that the query names, page by page.
func (c *caller) messages(ctx context.Context, query url.Values) ([]message, error) {
	var all []message
	q := url.Values{"limit": {"100"}}
	for name, values := range query {
		q[name] = values
	}
	for {
		var page struct {
			Data    []message `json:"data"`
			HasMore bool      `json:"has_more"`
			Cursor  string    `json:"cursor"`
		}
		if err := c.call(ctx, http.StatusOK, &page, http.MethodGet, "/v1/messages?"+q.Encode(), nil); err != nil {
			return nil, err
		}
		all = append(all, page.Data...)
		if !page.HasMore {
			return all, nil
		}
		q.Set("cursor", page.Cursor)
	}
}

// raw downloads a message through its signed link.
func (c *caller) raw(ctx context.Context, id string) ([]byte, error) {
	a, err := c.do(ctx, http.MethodGet, "/v1/messages/"+id+"/raw", nil)
	if err != nil {
		return nil, err
	}
	link, err := url.Parse(a.header.Get("Location"))
	if err != nil || a.status != http.StatusFound {
		return nil, &unwanted{"raw link", a}
	}
	if a, err = c.do(ctx, http.MethodGet, link.RequestURI(), nil); err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, &unwanted{"download", a}
	}
	return a.body, nil
}
