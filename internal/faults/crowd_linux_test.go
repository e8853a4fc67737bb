package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
)

// TestHonestSendersGetThroughACrowdOfSlowClients fills the SMTP server with clients
// that send nothing and clients that send slowly, each from its own address, more
// than the connection limit. Honest senders beside them, with one connection for each
// message, get all messages accepted at the first try, soon. So does a sender of a
// large message over a slow line. The API responds, and memory is bounded.
// Row S14 of docs/testing.md.
func TestHonestSendersGetThroughACrowdOfSlowClients(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, "sqlite")
	cert := writeCertificate(t)
	places := pick(150, 1000)
	in.settings = []string{
		"POSTROOM_SMTP_MAX_CONNS=" + strconv.Itoa(places), "POSTROOM_SMTP_MAX_CONNS_PER_IP=50",
		"POSTROOM_TLS_CERT=" + cert, "POSTROOM_TLS_KEY=" + cert,
	}
	n := in.start()
	to := in.createInboxes("honest")[0]
	idle, slow := pick(150, 1000), pick(75, 500)
	c := &crowd{n: n, to: to.Address}
	c.begin(t, idle, slow)
	waittest.Until(t, "the crowd fills the server", func() bool { return c.shed.Load() > int64(places)/10 })

	ctx, done := context.WithCancel(t.Context())
	defer done()
	probe := startProbe(ctx, n)
	steady := make(chan error, 1)
	go func() { steady <- c.sendSteadily(ctx, pick(128<<10, 24<<20), 64<<10) }()
	honest := newLedger("honest")
	took := c.sendHonestly(ctx, t, honest, pick(8, 20), pick(15, 600))
	if err := <-steady; err != nil {
		t.Errorf("the message over a slow line: %v", err)
	}
	done()
	health := probe.stop()
	rss := statusBytes(t, n.cmd.Process.Pid, "VmHWM:")
	c.end()
	t.Logf("%d idle and %d slow clients for %d connections, %d dropped for others, %d refused; %d honest messages: %s; p50 %s, p99 %s, longest %s; "+
		"/health: %d calls, p99 %s, longest %s; memory of the server %d MB",
		idle, slow, places, c.shed.Load(), c.away.Load(), len(took), honest, seconds(at(took, 50)), seconds(at(took, 99)), seconds(at(took, 100)),
		len(health), seconds(at(health, 99)), seconds(at(health, 100)), rss>>20)
	if full && at(took, 99) > time.Second {
		t.Errorf("p99 of honest mail is %v", at(took, 99))
	}
	if full && at(health, 99) > 100*time.Millisecond {
		t.Errorf("p99 of /health is %v", at(health, 99))
	}
	if rss > 300<<20 {
		t.Errorf("the server took %d MB", rss>>20)
	}
	for id, e := range honest.entries {
		if e.outcome != accepted {
			t.Errorf("%s was not accepted", id)
		}
	}
	honest.audit(t, slices.DeleteFunc(in.messages("in"), func(m message) bool { return m.Subject == "steady" }), byAddress(to), false)
}

// crowd is a group of clients that occupy connections.
type crowd struct {
	n    *node
	to   string
	stop context.CancelFunc
	all  sync.WaitGroup
	shed atomic.Int64 // dropped to make room
	away atomic.Int64 // refused at once
}

// begin connects the clients. They reconnect when the server disconnects them.
func (c *crowd) begin(t *testing.T, idle, slow int) {
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	for i := range idle + slow {
		phase := -1
		if i >= idle {
			phase = i % len(phases)
		}
		c.all.Go(func() {
			for ctx.Err() == nil {
				c.sit(ctx, i, phase)
				pause(ctx, time.Second)
			}
		})
	}
	t.Cleanup(c.end)
}

func (c *crowd) end() {
	c.stop()
	c.all.Wait()
}

// phases are the points of a session at which slow clients stop.
var phases = []string{
	"", "EHLO x\r\nMAIL FROM:<a", "EHLO x\r\nSTARTTLS\r\n", "EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<%s>\r\nDATA\r\nSubject: a",
	"EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<%s>\r\nDATA\r\nSubject: a\r\n\r\nb", "EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<%s>\r\nBDAT 90000\r\n",
}

// sit keeps a connection for as long as it can: in silence, or with a byte a second
// after the commands of its phase.
func (c *crowd) sit(ctx context.Context, i, phase int) {
	conn, err := dialFrom(ctx, loopback(20, i), c.n.smtp)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			switch {
			case strings.HasPrefix(lines.Text(), "421 4.4.2"):
				c.shed.Add(1)
			case strings.HasPrefix(lines.Text(), "421 4.7.0 Too many"):
				c.away.Add(1)
			}
		}
	}()
	if phase < 0 {
		<-gone
		return
	}
	say := strings.ReplaceAll(phases[phase], "%s", c.to)
	drip := time.NewTicker(time.Second)
	defer drip.Stop()
	for _, err = io.WriteString(conn, say); err == nil; {
		select {
		case <-gone:
			return
		case <-drip.C:
			_, err = conn.Write([]byte("x"))
		}
	}
	<-gone
}

// loopback returns the nth loopback address of a group.
func loopback(group, n int) net.IP {
	return net.ParseIP(fmt.Sprintf("127.%d.%d.%d", group, n/250, n%250+1))
}

// sendHonestly sends messages from several addresses, each on its own connection and
// without a retry, and returns how long each took, from the dial to the 250.
func (c *crowd) sendHonestly(ctx context.Context, t *testing.T, book *ledger, senders, messages int) []time.Duration {
	t.Helper()
	var (
		mu   sync.Mutex
		took []time.Duration
		wg   sync.WaitGroup
	)
	for i := range senders {
		wg.Go(func() {
			for range messages {
				m := newMessage(book.next(), 4<<10, c.to)
				began := time.Now()
				what, err := c.sendOne(ctx, loopback(10, i), m)
				d := time.Since(began)
				book.write(m.id, entry{outcome: what, to: m.to, size: len(m.raw)})
				if err != nil {
					t.Errorf("honest mail after %v: %v", d, err)
				}
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
				pause(ctx, time.Duration(pick(100, 500))*time.Millisecond) // until the slow message is sent
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took
}

func (c *crowd) sendOne(ctx context.Context, from net.IP, m testMessage) (outcome, error) {
	client, err := dialSMTPFrom(ctx, from, c.n.smtp)
	if err != nil {
		return refused, err
	}
	defer client.close()
	return client.send(m)
}

// sendSteadily sends one message of size bytes at rate bytes a second.
func (c *crowd) sendSteadily(ctx context.Context, size, rate int) error {
	client, err := dialSMTPFrom(ctx, loopback(11, 0), c.n.smtp)
	if err != nil {
		return err
	}
	defer client.close()
	if err := client.envelope(testMessage{from: sender, to: []string{c.to}}); err != nil {
		return err
	}
	if err := client.conn.SetDeadline(time.Now().Add(time.Duration(size/rate)*time.Second + testTimeout)); err != nil {
		return err
	}
	line := append(bytes.Repeat([]byte("x"), 62), "\r\n"...)
	piece := bytes.Repeat(line, rate/len(line)/4)
	if _, err := io.WriteString(client.conn, "Subject: steady\r\n\r\n"); err != nil {
		return err
	}
	for sent := 0; sent < size; sent += len(piece) {
		if _, err := client.conn.Write(piece); err != nil {
			return fmt.Errorf("cut off after %d bytes: %w", sent, err)
		}
		pause(ctx, time.Second/4)
	}
	if _, err := io.WriteString(client.conn, ".\r\n"); err != nil {
		return err
	}
	return client.reply()
}

// probe calls /health repeatedly.
type probe struct {
	cancel context.CancelFunc
	took   chan []time.Duration
}

func startProbe(ctx context.Context, n *node) *probe {
	ctx, cancel := context.WithCancel(ctx)
	p := &probe{cancel, make(chan []time.Duration, 1)}
	go func() {
		c := n.caller()
		defer c.close()
		var took []time.Duration
		for ctx.Err() == nil {
			began := time.Now()
			a, err := c.do(ctx, http.MethodGet, "/health", nil)
			if err == nil && a.status == http.StatusOK {
				took = append(took, time.Since(began))
			} else if ctx.Err() == nil {
				took = append(took, testTimeout) // a failure counts as the worst time
			}
			pause(ctx, 50*time.Millisecond)
		}
		p.took <- took
	}()
	return p
}

// stop returns how long the calls took.
func (p *probe) stop() []time.Duration {
	p.cancel()
	took := <-p.took
	slices.Sort(took)
	return took
}
