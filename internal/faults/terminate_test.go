package faults_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
)

// TestShutdownUnderLoadLosesNothing terminates the service repeatedly while mail
// arrives, the API is called, and waits and streams of events are open. Nothing that had
// begun fails: data and calls get a reply, waits end with 503, streams between two events, the
// program exits with 0, and everything that it promised is stored. Row C10 of docs/testing.md.
func TestShutdownUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		s := &terminating{in: in, rounds: pick(3, 20)}
		s.run(t)
	})
}

// mostToStop is how long the program may take to end.
const mostToStop = 30 * time.Second

// terminating runs load on an installation that is terminated repeatedly.
type terminating struct {
	in     *installation
	rounds int

	received, sent, made *ledger
	from, to, quiet      inbox // quiet gets no mail
}

func (s *terminating) run(t *testing.T) {
	t.Helper()
	s.received, s.sent, s.made = newLedger("received"), newLedger("sent"), newLedger("made")
	s.in.start()
	boxes := s.in.createInboxes("from", "to", "quiet")
	s.from, s.to, s.quiet = boxes[0], boxes[1], boxes[2]
	rng := randomness(t)
	var took []time.Duration
	for range s.rounds {
		took = append(took, s.round(t, 50+rng.IntN(100)))
		s.in.start()
	}
	slices.Sort(took)
	t.Logf("terminated %d times: ended within %s, half of them within %s; received: %s; sent: %s; inboxes: %s",
		s.rounds, seconds(took[len(took)-1]), seconds(took[len(took)/2]), s.received, s.sent, s.made)
	s.audit(t)
}

// round loads the serving node, terminates it after that number of promises, and waits
// for its end.
func (s *terminating) round(t *testing.T, promises int) time.Duration {
	t.Helper()
	n := s.in.current()
	r := &round{terminating: s, t: t, node: n, stopped: make(chan struct{})}
	var working sync.WaitGroup
	for range workers {
		working.Go(func() { r.deliver(2 << 10) })
		working.Go(r.call)
		working.Go(r.wait)
	}
	working.Go(func() { r.deliver(300 << 10) })
	working.Go(r.idle)
	working.Go(r.inTheMiddle)
	working.Go(r.listen)
	waittest.Until(t, "all clients are at work", func() bool { return r.open.Load() == workers+2 })
	enough := s.promises() + promises
	waittest.Until(t, "the service accepts mail", func() bool { return s.promises() >= enough })

	s.in.set(nil)
	r.stopping.Store(true)
	began := time.Now()
	n.terminate(t)
	waittest.Until(t, "the service stops listening", func() bool { return refuses(t.Context(), n.smtp) })
	close(r.stopped)
	err := n.end()
	took := time.Since(began)
	working.Wait()
	if err != nil {
		t.Errorf("the program did not end as it should: %v", err)
	}
	if took > mostToStop {
		t.Errorf("the program took %v to end", took)
	}
	return took
}

func (s *terminating) promises() int { return s.received.count(accepted) + s.sent.count(accepted) }

// refuses reports whether addr refuses connections.
func refuses(ctx context.Context, addr string) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return err != nil
}

// workers is the number of clients of each kind.
const workers = 5

// round is the load on one node until the node has ended.
type round struct {
	*terminating
	t        *testing.T
	node     *node
	stopping atomic.Bool   // the program is terminated, or about to be
	stopped  chan struct{} // closed when it has stopped listening
	open     atomic.Int64  // waits, the idle session and the session in the middle of a message
}

// deliver sends messages until the server closes the connection.
func (r *round) deliver(size int) {
	c, err := dialSMTP(r.t.Context(), r.node.smtp)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer c.close()
	for err == nil {
		err = r.send(c, size)
	}
	r.wantGoodbye(err)
}

// send offers one message. Data that was sent completely must get a reply.
func (r *round) send(c *smtpClient, size int) error {
	m := newMessage(r.received.next(), size, r.to.Address)
	o, err := c.send(m)
	r.received.write(m.id, entry{outcome: o, to: m.to, size: len(m.raw)})
	if o == unknown {
		r.t.Errorf("%s was sent completely and got no reply: %v", m.id, err)
	}
	return err
}

// wantGoodbye checks that the server stops and that it ended the session with 421.
func (r *round) wantGoodbye(err error) {
	no, ok := errors.AsType[*refusal](err)
	if !r.stopping.Load() || !ok || no.code != 421 {
		r.t.Errorf("the session ended with %v, want 421 after the service was terminated", err)
	}
}

// idle keeps a session open and waits for the 421.
func (r *round) idle() {
	c, err := dialSMTP(r.t.Context(), r.node.smtp)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer c.close()
	r.open.Add(1)
	r.wantGoodbye(c.reply())
}

// inTheMiddle has sent half of its message when the program is terminated, and sends
// the rest after that. The server must accept it.
func (r *round) inTheMiddle() {
	c, err := dialSMTP(r.t.Context(), r.node.smtp)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer c.close()
	c.at = func(at step) {
		if at == halfSent {
			r.open.Add(1)
			<-r.stopped
		}
	}
	if err := r.send(c, 2<<10); err != nil {
		r.t.Errorf("the message in transit when the service was terminated: %v", err)
	}
}

// call calls the API until its connection is closed: in turn a message, an inbox and a
// list. Every call must get a complete response.
func (r *round) call() {
	c := r.node.caller()
	defer c.close()
	for i := 0; ; i++ {
		method, path, body, want, done := r.nextCall(i)
		a, err := c.do(r.t.Context(), method, path, body)
		switch {
		case err != nil: // a server that stops announces it in the response before
			r.t.Errorf("%s %s got no response: %v", method, path, err)
			done(unknown)
			return
		case a.status != want:
			r.t.Errorf("%s %s got %d %s", method, path, a.status, a.body)
			done(refused)
		default:
			done(accepted)
		}
		if a.last {
			return
		}
	}
}

func (r *round) nextCall(i int) (method, path string, body any, want int, done func(outcome)) {
	switch i % 3 {
	case 0:
		id := r.sent.next()
		return http.MethodPost, "/v1/inboxes/" + r.from.ID + "/messages",
			map[string]any{"to": r.to.Address, "subject": id, "text": bodyMark(id)}, http.StatusCreated,
			func(o outcome) { r.sent.write(id, entry{outcome: o, to: []string{r.to.Address}}) }
	case 1:
		id := r.made.next()
		return http.MethodPost, "/v1/inboxes", map[string]any{"name": id}, http.StatusCreated,
			func(o outcome) { r.made.write(id, entry{outcome: o}) }
	}
	return http.MethodGet, "/v1/messages?limit=5", nil, http.StatusOK, func(outcome) {}
}

// wait waits for a message that does not arrive, until the service stops.
func (r *round) wait() {
	c := r.node.caller()
	defer c.close()
	ctx := whenSent(r.t.Context(), func() { r.open.Add(1) })
	var res struct{ Error struct{ Code string } }
	err := c.call(ctx, http.StatusServiceUnavailable, &res, http.MethodGet, "/v1/inboxes/"+r.quiet.ID+"/messages/wait?timeout=55", nil)
	if err != nil || res.Error.Code != "unavailable" || !r.stopping.Load() {
		r.t.Errorf("a wait ended with %+v, %v", res, err)
	}
}

// listen reads a stream of events until the service ends it.
func (r *round) listen() {
	stream, err := r.node.listen(r.t.Context(), firstKey, "", "")
	for err == nil {
		_, err = stream.next()
	}
	if !errors.Is(err, io.EOF) || !r.stopping.Load() {
		r.t.Errorf("a stream ended with %v", err)
	}
}

// audit checks for everything that was promised.
func (s *terminating) audit(t *testing.T) {
	t.Helper()
	s.in.auditBoth(s.sent, s.received, s.to, false)
	c := s.in.current().caller()
	defer c.close()
	boxes, err := list[inbox](t.Context(), c, "/v1/inboxes", nil)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, b := range boxes {
		there[b.Name] = true
	}
	for id, e := range s.made.entries {
		if there[id] != (e.outcome == accepted) {
			t.Errorf("inbox %s exists: %v; its creation was accepted: %v", id, there[id], e.outcome == accepted)
		}
	}
}

// whenSent calls f when the call that is made with the context is on its way.
func whenSent(ctx context.Context, f func()) context.Context {
	var once sync.Once // a call may be sent again on another connection
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once.Do(f) }})
}
