package faults_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestC10TerminateUnderLoad tells the service to stop, again and again, while
// mail comes in, the API is called and waits are open. Nothing that had begun
// fails: data gets its answer, calls get theirs, waits end with 200; the program
// ends with 0; and what it promised is there when it comes up again.
func TestC10TerminateUnderLoad(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *install) {
		s := &terminating{in: in, rounds: pick(3, 20)}
		s.run(t)
	})
}

// mostToStop is the longest that the program may take to end.
const mostToStop = 30 * time.Second

// terminating is load on an install that is told to stop.
type terminating struct {
	in     *install
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
	t.Logf("told to stop %d times: ended within %s, half of them within %s; mail: %s; sent: %s; inboxes: %s",
		s.rounds, seconds(took[len(took)-1]), seconds(took[len(took)/2]), s.received, s.sent, s.made)
	s.audit(t)
}

// round loads the node that serves, tells it to stop once it has made that many
// promises, and waits for its end.
func (s *terminating) round(t *testing.T, promises int) time.Duration {
	t.Helper()
	n := s.in.current()
	r := &round{terminating: s, t: t, node: n, told: make(chan struct{})}
	var working sync.WaitGroup
	for range workers {
		working.Go(func() { r.deliver(2 << 10) })
		working.Go(r.call)
		working.Go(r.wait)
	}
	working.Go(func() { r.deliver(300 << 10) })
	working.Go(r.idle)
	working.Go(r.inTheMiddle)
	eventually(t, "all clients are at work", func() bool { return r.open.Load() == workers+2 })
	enough := s.promises() + promises
	eventually(t, "the service takes mail", func() bool { return s.promises() >= enough })

	s.in.set(nil)
	r.stopping.Store(true)
	began := time.Now()
	n.tell(t)
	eventually(t, "the service stops listening", func() bool { return refuses(t.Context(), n.smtp) })
	close(r.told)
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

// refuses says whether nobody listens at addr.
func refuses(ctx context.Context, addr string) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return err != nil
}

// workers are the clients of each kind.
const workers = 5

// round is the load on one node until that has ended.
type round struct {
	*terminating
	t        *testing.T
	node     *node
	stopping atomic.Bool   // the program is told to stop, or is about to be
	told     chan struct{} // closed when it has stopped listening
	open     atomic.Int64  // waits, the idle session and the one in the middle of its mail
}

// deliver sends mail until the server asks to go.
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

// send offers one mail. Data that was handed over must get an answer.
func (r *round) send(c *smtpClient, size int) error {
	m := newMail(r.received.next(), size, r.to.Address)
	o, err := c.send(m)
	r.received.write(m.id, entry{outcome: o, to: m.to, size: len(m.raw)})
	if o == unknown {
		r.t.Errorf("%s was handed over and got no answer: %v", m.id, err)
	}
	return err
}

// wantGoodbye makes sure that a session ended because the server stops, and
// with words.
func (r *round) wantGoodbye(err error) {
	no, ok := errors.AsType[*refusal](err)
	if !r.stopping.Load() || !ok || no.code != 421 {
		r.t.Errorf("the session ended with %v, want 421 after the service was told to stop", err)
	}
}

// idle holds a session open and waits for the goodbye.
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

// inTheMiddle has sent half of its mail when the program is told to stop, and
// sends the rest after that. It must be taken.
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
			<-r.told
		}
	}
	if err := r.send(c, 2<<10); err != nil {
		r.t.Errorf("mail that was coming in when the service was told to stop: %v", err)
	}
}

// call calls the API until its connection is closed: a mail, an inbox, a list,
// and again. Every call gets a whole answer.
func (r *round) call() {
	c := r.node.caller()
	defer c.close()
	for i := 0; ; i++ {
		method, path, body, want, done := r.nextCall(i)
		a, err := c.do(r.t.Context(), method, path, body)
		switch {
		case err != nil: // a server that goes says so in the answer before
			r.t.Errorf("%s %s got no answer: %v", method, path, err)
			done(unknown)
			return
		case a.status != want:
			r.t.Errorf("%s %s is answered with %d %s", method, path, a.status, a.body)
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

// wait waits for mail that does not come, until the service stops.
func (r *round) wait() {
	c := r.node.caller()
	defer c.close()
	ctx := whenSent(r.t.Context(), func() { r.open.Add(1) })
	var res waitResult
	err := c.call(ctx, http.StatusOK, &res, http.MethodGet, "/v1/inboxes/"+r.quiet.ID+"/messages/wait?timeout=55", nil)
	if err != nil || !res.TimedOut || !r.stopping.Load() {
		r.t.Errorf("a wait ended with %+v, %v", res, err)
	}
}

// audit looks for everything that was promised.
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
			t.Errorf("inbox %s is there: %v; it was accepted: %v", id, there[id], e.outcome == accepted)
		}
	}
}
