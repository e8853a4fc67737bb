package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
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
			Transport: exchanges.Transport(&http.Transport{DisableCompression: true}),
			Timeout:   testTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
}

func (c *caller) close() { c.http.CloseIdleConnections() }

// response is a complete response of the API.
type response struct {
	status int
	header http.Header
	body   []byte
	last   bool // the connection closes after it
}

// unwanted is a response with a status that the test did not expect.
type unwanted struct {
	call string
	response
}

func (u *unwanted) Error() string { return fmt.Sprintf("%s: %d %s", u.call, u.status, u.body) }

// do calls the API. The header list holds names and values in turn. An error
// means that no complete response arrived.
func (c *caller) do(ctx context.Context, method, path string, body any, header ...string) (response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return response{}, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return response{}, err
	}
	req.Header.Set("Authorization", "Bearer "+firstKey)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, b, res.Close}, err
}

// call is do for calls that must return the status want. It decodes the body
// into out. The error is an *unwanted when the status differs.
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

// inbox holds the fields of an inbox that the tests read.
type inbox struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Name    string `json:"name"`
}

// byAddress maps the addresses of inboxes to their ids.
func byAddress(boxes ...inbox) map[string]string {
	ids := map[string]string{}
	for _, b := range boxes {
		ids[b.Address] = b.ID
	}
	return ids
}

// message holds the fields of a message that the tests read.
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

// list reads all pages of a list.
func list[T any](ctx context.Context, c *caller, path string, query url.Values) ([]T, error) {
	var all []T
	q := maps.Clone(query)
	if q == nil {
		q = url.Values{}
	}
	q.Set("limit", "100")
	for {
		var page struct {
			Data    []T    `json:"data"`
			HasMore bool   `json:"has_more"`
			Cursor  string `json:"cursor"`
		}
		if err := c.call(ctx, http.StatusOK, &page, http.MethodGet, path+"?"+q.Encode(), nil); err != nil {
			return nil, err
		}
		all = append(all, page.Data...)
		if !page.HasMore {
			return all, nil
		}
		q.Set("cursor", page.Cursor)
	}
}

// messages lists all messages of one direction, "in" or "out".
func (in *installation) messages(direction string) []message {
	in.t.Helper()
	c := in.current().caller()
	defer c.close()
	all, err := list[message](in.t.Context(), c, "/v1/messages", url.Values{"direction": {direction}, "include": {"text"}})
	if err != nil {
		in.t.Fatal(err)
	}
	return all
}

// createInboxes creates inboxes with these names.
func (in *installation) createInboxes(names ...string) []inbox {
	in.t.Helper()
	c := in.current().caller()
	defer c.close()
	boxes := make([]inbox, len(names))
	for i, name := range names {
		err := c.call(in.t.Context(), http.StatusCreated, &boxes[i], http.MethodPost, "/v1/inboxes", map[string]any{"name": name})
		if err != nil {
			in.t.Fatal(err)
		}
	}
	return boxes
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
