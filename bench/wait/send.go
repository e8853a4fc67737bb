package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// senders are the SMTP connections that send.
type senders struct {
	o     options
	body  string
	conns []*sender
}

func newSenders(ctx context.Context, o options) (*senders, error) {
	s := &senders{o: o, body: body(o.size)}
	for range o.senders {
		c := &sender{addr: o.smtp}
		s.conns = append(s.conns, c)
		if o.connect {
			continue
		}
		if err := c.open(ctx); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *senders) close() {
	for _, c := range s.conns {
		c.close()
	}
}

// body returns size bytes of text lines.
func body(size int) string {
	const line = "All work and no play makes Jack a dull boy, says the proverb, twice.\r\n"
	return strings.Repeat(line, max(1, size/len(line)))
}

// sendAll sends one message to each inbox, over all connections, and records when each
// began.
func (s *senders) sendAll(ctx context.Context, boxes []*inbox, subject func(int) string, began []time.Time) error {
	var (
		all  sync.WaitGroup
		errs = make([]error, len(s.conns))
		next = make(chan int, len(boxes))
	)
	for k, c := range s.conns {
		all.Go(func() {
			for i := range next {
				message := fmt.Sprintf("From: bench@example.org\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: <%s.%d@example.org>\r\n\r\n%s.\r\n",
					boxes[i].Address, subject(i), boxes[i].ID, time.Now().UnixNano(), s.body)
				began[i] = time.Now()
				if errs[k] = c.send(ctx, boxes[i].Address, message, s.o.connect); errs[k] != nil {
					return
				}
			}
		})
	}
	err := s.pace(ctx, next, len(boxes))
	close(next)
	all.Wait()
	return errors.Join(append(errs, err)...)
}

// pace passes the messages to the connections, at the rate that was asked for.
func (s *senders) pace(ctx context.Context, next chan<- int, n int) error {
	start := time.Now()
	for i := range n {
		if s.o.pace > 0 {
			due := start.Add(time.Duration(i) * time.Second / time.Duration(s.o.pace))
			if err := sleep(ctx, time.Until(due)); err != nil {
				return err
			}
		}
		next <- i // the buffer has room for all
	}
	return nil
}

// sender is one SMTP connection.
type sender struct {
	addr string
	conn net.Conn
	r    *bufio.Reader
}

func (c *sender) open(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return err
	}
	c.conn, c.r = conn, bufio.NewReader(conn)
	if err := c.want("220"); err != nil {
		return err
	}
	return c.say("EHLO bench.example.org\r\n", "250")
}

func (c *sender) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// send sends a message. Its envelope goes in one packet (PIPELINING, RFC 2920).
func (c *sender) send(ctx context.Context, to, message string, connect bool) error {
	if connect {
		if err := c.open(ctx); err != nil {
			return err
		}
		defer c.close()
	}
	if err := c.say("MAIL FROM:<bench@example.org>\r\nRCPT TO:<"+to+">\r\nDATA\r\n", "250", "250", "354"); err != nil {
		return err
	}
	return c.say(message, "250")
}

// say sends text and expects replies with these codes, in order.
func (c *sender) say(text string, codes ...string) error {
	if err := c.conn.SetDeadline(time.Now().Add(waitSeconds * time.Second)); err != nil {
		return err
	}
	if _, err := c.conn.Write([]byte(text)); err != nil {
		return err
	}
	for _, code := range codes {
		if err := c.want(code); err != nil {
			return err
		}
	}
	return nil
}

// want reads a reply of one line or more, and expects it to have this code.
func (c *sender) want(code string) error {
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, code) {
			return fmt.Errorf("SMTP: want %s, got %s", code, strings.TrimSpace(line))
		}
		if len(line) > 3 && line[3] == ' ' {
			return nil
		}
	}
}
