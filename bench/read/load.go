package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// testCase is one kind of request.
type testCase struct {
	name string
	path func() string
	want int // messages in the response; -1 for any number, and for a page
}

// cases returns the requests to measure. It reads the list first, for cursors and ids.
func (f *filler) cases(ctx context.Context, s *harness.Service) ([]testCase, error) {
	const perPage = 50
	cursors, ids, err := walk(ctx, s, min(1000, f.have/perPage), perPage)
	if err != nil {
		return nil, err
	}
	list := func(params ...string) func() string {
		q := url.Values{"limit": {fmt.Sprint(perPage)}}
		for pair := range slices.Chunk(params, 2) {
			q.Set(pair[0], pair[1])
		}
		return func() string { return "/v1/messages?" + q.Encode() }
	}
	rare := min(perPage, f.have/100)
	cases := []testCase{
		{"page of 50", list(), perPage},
		{"one message", func() string { return "/v1/messages/" + ids[rand.IntN(len(ids))] }, -1},
		{"q, a word of 95 %", list("q", commonWord), perPage},
		{"q, a word of 1 %", list("q", rareWord), rare},
		{"q, a word of none", list("q", noWord), 0},
		{"q, a phrase of few", list("q", `"`+rareWord+" "+word(0)+`"`), -1},
		{"q with a sender", list("q", commonWord, "from", "*@mail7.example"), -1},
		{"a sender of none", list("from", "*@none.example"), 0},
		{"a subject of none", list("subject", "no such subject"), 0},
	}
	if last := len(cursors); last > 1 {
		cases = append(cases,
			testCase{"page 2", list("cursor", cursors[0]), perPage},
			testCase{fmt.Sprintf("page %d", last), list("cursor", cursors[last-2]), perPage})
	}
	inbox := "/inboxes/" + f.inbox.ID
	at := func(path string) func() string { return func() string { return path } }
	some := func() string { return "/messages/" + ids[rand.IntN(len(ids))] }
	return append(cases, []testCase{
		{"dashboard: overview", at("/"), -1},
		{"dashboard: inboxes", at("/inboxes"), -1},
		{"dashboard: threads", at(inbox), -1},
		{"dashboard: search", at(inbox + "?q=" + rareWord), -1},
		{"dashboard: messages", at(inbox + "?direction=in"), -1},
		{"dashboard: message", some, -1},
		{"dashboard: its frame", func() string { return some() + "/view" }, -1},
		{"dashboard: approvals", at("/approvals"), -1},
		{"dashboard: sent", at("/emails?kind=messages"), -1},
	}...), nil
}

// walk reads the list of messages, and returns its cursors and some ids.
func walk(ctx context.Context, s *harness.Service, pages, perPage int) (cursors, ids []string, err error) {
	client := &http.Client{}
	for path := fmt.Sprintf("/v1/messages?limit=%d", perPage); len(cursors) < pages; {
		body, err := get(ctx, s, client, path)
		if err != nil {
			return nil, nil, err
		}
		var page struct {
			Data   []struct{ ID string }
			Cursor *string
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, nil, err
		}
		for _, m := range page.Data {
			ids = append(ids, m.ID)
		}
		if page.Cursor == nil {
			break
		}
		cursors = append(cursors, *page.Cursor)
		path = fmt.Sprintf("/v1/messages?limit=%d&cursor=%s", perPage, *page.Cursor)
	}
	return cursors, ids, nil
}

func get(ctx context.Context, s *harness.Service, client *http.Client, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address+path, nil)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(path, "/v1/") {
		req.Header.Set("Authorization", "Bearer "+harness.Key)
	}
	req.AddCookie(&http.Cookie{Name: "postroom_session", Value: session}) //nolint:gosec // a session for the benchmark only
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, res.Status, body)
	}
	return body, err
}

// load repeats a request on that number of connections, and prints a row. It checks the
// first response completely, and the status of every other one.
func load(ctx context.Context, s *harness.Service, c testCase, n int) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}}
	defer client.CloseIdleConnections()
	if err := c.check(ctx, s, client); err != nil {
		return err
	}
	times := make([]harness.Times, n)
	start, used := time.Now(), s.CPU()
	err := harness.Parallel(n, func(i int) error {
		for begin := time.Now(); begin.Sub(start) < *duration; {
			if _, err := get(ctx, s, client, c.path()); err != nil {
				return err
			}
			end := time.Now()
			times[i] = append(times[i], end.Sub(begin))
			begin = end
		}
		return nil
	})
	all, took := harness.Sorted(times...), time.Since(start)
	cpu := (s.CPU() - used) / time.Duration(max(1, len(all))) // beside other work it varies less than the rate
	fmt.Printf("%-22s %6d %9.0f %10s %10s %10s %14s\n", c.name, n, float64(len(all))/took.Seconds(),
		harness.Short(all.At(0.50)), harness.Short(all.At(0.99)), harness.Short(all.At(1)), cpu.Round(time.Microsecond))
	return err
}

func (c testCase) check(ctx context.Context, s *harness.Service, client *http.Client) error {
	body, err := get(ctx, s, client, c.path())
	if err != nil || c.want < 0 {
		return err
	}
	var page struct{ Data []json.RawMessage }
	if err := json.Unmarshal(body, &page); err != nil {
		return err
	}
	if len(page.Data) != c.want {
		return fmt.Errorf("got %d messages, want %d", len(page.Data), c.want)
	}
	return nil
}
