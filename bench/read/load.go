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
	"sync"
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
	return append(cases, f.dashboard(ids)...), nil
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
	req.Header.Set("Authorization", "Bearer "+harness.Key)
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

// result is the result of one measurement.
type result struct {
	times []time.Duration // sorted
	took  time.Duration
	cpu   time.Duration // of the service
}

// load repeats a request on that number of connections. It checks the first response
// completely, and the status of every other one.
func load(ctx context.Context, s *harness.Service, c testCase, conns int, d time.Duration) (result, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns, DisableCompression: true}}
	defer client.CloseIdleConnections()
	if err := c.check(ctx, s, client); err != nil {
		return result{}, err
	}
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		res   result
		first error
	)
	start, used := time.Now(), s.CPU()
	for range conns {
		all.Go(func() {
			var times []time.Duration
			var err error
			for begin := time.Now(); err == nil && begin.Sub(start) < d; {
				_, err = get(ctx, s, client, c.path())
				now := time.Now()
				times = append(times, now.Sub(begin))
				begin = now
			}
			mu.Lock()
			defer mu.Unlock()
			if res.times = append(res.times, times...); err != nil {
				first = err
			}
		})
	}
	all.Wait()
	res.took, res.cpu = time.Since(start), s.CPU()-used
	slices.Sort(res.times)
	return res, first
}

func (c testCase) check(ctx context.Context, s *harness.Service, client *http.Client) error {
	body, err := get(ctx, s, client, c.path())
	if err != nil {
		return err
	}
	if c.want < 0 {
		return nil
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
