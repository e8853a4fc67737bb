package httpserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/cputime"
)

// bell is a handler that parks each request until it is rung, or for an hour.
type bell struct {
	left   time.Duration
	mu     sync.Mutex
	wakes  []func()
	parked chan string // paths
	ended  chan int    // Pause.Ended
}

func newBell() *bell {
	return &bell{left: time.Hour, parked: make(chan string, 5000), ended: make(chan int, 5000)}
}

func (b *bell) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	state := Resumed(r)
	if state == nil && strings.HasPrefix(r.URL.Path, "/wait") && CanPark(w, r) {
		err := Park(w, r, Pause{
			Left: b.left, State: r.URL.Path, Ended: func(status int) { b.ended <- status },
			OnWake: func(f func()) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.wakes = append(b.wakes, f)
			},
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		b.parked <- r.URL.Path
		return
	}
	_, _ = fmt.Fprintf(w, "%s %s %v %s", r.Method, r.URL, state, r.Header.Get("X-Test"))
}

// ring lets all parked requests continue. Ringing for a request that has continued
// has no effect.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.wakes {
		f()
	}
}

// text reads a response and returns its body.
func text(t *testing.T, c *bufio.ReadWriter) string {
	t.Helper()
	res, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A parked request continues with its state, and the connection serves more requests,
// which may be parked too.
func TestAParkedConnectionGoesOn(t *testing.T) {
	t.Parallel()
	b := newBell()
	c := serveHTTP(t, b.ServeHTTP).dial(t)
	for i := range 3 {
		path := fmt.Sprintf("/wait%d?a=%%20b", i)
		_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: test\r\nx-test: yes %d\r\n\r\n", path, i)
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		<-b.parked
		b.ring()
		if got, want := text(t, c), fmt.Sprintf("GET %s /wait%d yes %d", path, i, i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.ring() // for requests that have continued
		send(t, c, "/plain")
		if got := text(t, c); got != "GET /plain <nil> " {
			t.Errorf("got %q", got)
		}
	}
}

// A pause that times out lets the request continue.
func TestAPauseEnds(t *testing.T) {
	t.Parallel()
	b := newBell()
	b.left = time.Millisecond
	c := serveHTTP(t, b.ServeHTTP).dial(t)
	send(t, c, "/wait")
	if got := text(t, c); got != "GET /wait /wait " {
		t.Errorf("got %q", got)
	}
}

// A client may send its next request before it has the response. The first request
// then waits without being parked.
func TestAClientThatSendsMoreWhileParked(t *testing.T) {
	t.Parallel()
	b := newBell()
	c := serveHTTP(t, b.ServeHTTP).dial(t)
	send(t, c, "/wait")
	<-b.parked
	send(t, c, "/plain")
	if got := text(t, c) + text(t, c); got != "GET /wait /wait GET /plain <nil> " {
		t.Errorf("got %q", got)
	}
	_, _ = fmt.Fprint(c, "GET /wait1 HTTP/1.1\r\nHost: test\r\n\r\nGET /plain HTTP/1.1\r\nHost: test\r\n\r\n") // at once
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	b.ring()
	if got := text(t, c) + text(t, c); !strings.HasPrefix(got, "GET /wait1 ") || !strings.HasSuffix(got, "GET /plain <nil> ") {
		t.Errorf("got %q", got)
	}
}

// Requests with a body, or over HTTP/1.0, are not parked.
func TestRequestsThatAreNotParked(t *testing.T) {
	t.Parallel()
	b := newBell()
	d := serveHTTP(t, b.ServeHTTP)
	for _, request := range []string{
		"GET /wait HTTP/1.0\r\n\r\n", "POST /wait HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\na",
		"POST /wait HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		c := d.dial(t)
		_, _ = io.WriteString(c, request)
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := text(t, c); !strings.Contains(got, "/wait <nil>") {
			t.Errorf("%q: got %q", request, got)
		}
	}
}

// A client that disconnects ends its pause.
func TestAParkedClientDisconnects(t *testing.T) {
	t.Parallel()
	b := newBell()
	d := serveHTTP(t, b.ServeHTTP)
	c, err := net.Dial("tcp", d.l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET /wait HTTP/1.1\r\nHost: test\r\n\r\n")
	<-b.parked
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if status := <-b.ended; status != 0 {
		t.Errorf("ended with %d", status)
	}
	b.ring()
	<-d.conns.gone()
}

// On shutdown parked requests get 503 at once and the server does not wait for them.
func TestShutdownEndsParkedRequests(t *testing.T) {
	t.Parallel()
	const parked = 100
	b := newBell()
	d := serveHTTP(t, b.ServeHTTP)
	var conns []*bufio.ReadWriter
	for range parked {
		conns = append(conns, d.dial(t))
		send(t, conns[len(conns)-1], "/wait")
	}
	for range parked {
		<-b.parked
	}
	done := d.shutdown(t)
	for _, c := range conns {
		res := receive(t, c)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" || !res.Close {
			t.Errorf("got %d %v", res.StatusCode, res.Header)
		}
		if status := <-b.ended; status != http.StatusServiceUnavailable {
			t.Errorf("ended with %d", status)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Each of many parked requests gets the response to its own path, whoever rings and
// whenever.
func TestManyParkedRequestsContinueAtOnce(t *testing.T) {
	t.Parallel()
	const clients, rounds = 30, 20
	b := newBell()
	d := serveHTTP(t, b.ServeHTTP)
	stop := make(chan struct{})
	var ringing sync.WaitGroup
	ringing.Go(func() {
		for {
			select {
			case <-b.parked:
				b.ring()
			case <-stop:
				return
			}
		}
	})
	var all sync.WaitGroup
	for i := range clients {
		c := d.dial(t)
		all.Go(func() {
			for n := range rounds {
				path := fmt.Sprintf("/wait/%d/%d", i, n)
				_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", path)
				if err := c.Flush(); err != nil {
					t.Error(err)
					return
				}
				res, err := http.ReadResponse(c.Reader, nil)
				if err != nil {
					t.Error(err)
					return
				}
				body, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if want := fmt.Sprintf("GET %s %s ", path, path); string(body) != want {
					t.Errorf("got %q, want %q", body, want)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	ringing.Wait()
}

// A parked connection needs little memory in this process.
func TestAParkedConnectionIsSmall(t *testing.T) {
	if cputime.RaceDetector {
		t.Skip("the race detector needs memory of its own for each goroutine")
	}
	const parked = 1000
	b := newBell()
	d := serveHTTP(t, b.ServeHTTP)
	conns := make([]net.Conn, parked)
	before := inUse() // the clients' ends count too
	for i := range conns {
		c, err := net.Dial("tcp", d.l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		conns[i] = c
	}
	for _, c := range conns {
		_, _ = fmt.Fprintf(c, "GET /wait HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n", strings.Repeat("k", 40))
	}
	for range parked {
		<-b.parked
	}
	each := (inUse() - before) / parked
	t.Logf("a parked connection takes %d bytes of heap and stack", each)
	if each > 8<<10 {
		t.Errorf("a parked connection takes %d bytes of heap and stack", each)
	}
	b.ring()
}

// inUse returns the bytes of live objects and stacks.
func inUse() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC() // shrinks stacks, and empties pools
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // far below the limit
}

// Memory is collected when many more requests are parked than at the last collection, also
// after those have gone and others have come.
func TestManyParkedRequestsStartACollection(t *testing.T) {
	t.Parallel()
	c := &parkedConns{}
	state := func() (collected int, collecting bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.collected, c.collecting
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for round := range 2 {
		var all []*parked
		for i := range collectEvery {
			if _, collecting := state(); collecting {
				t.Fatalf("round %d: a collection is due with %d parked", round, i)
			}
			all = append(all, &parked{})
			c.add(all[i])
		}
		for collected, collecting := 0, true; collecting; collected, collecting = state() {
			select {
			case <-tick.C:
			case <-t.Context().Done():
				t.Fatalf("round %d: collected is %d", round, collected)
			}
		}
		if collected, _ := state(); collected != collectEvery {
			t.Fatalf("round %d: memory was collected with %d parked, want %d", round, collected, collectEvery)
		}
		for _, p := range all {
			c.remove(p)
		}
	}
}
