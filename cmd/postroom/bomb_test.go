package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/skiptest"
	"github.com/postroom/postroom/smtp/smtptest"
)

// bombs are messages that are made to cost much to read, at the limits of size. Normal
// tests leave out the long ones.
func bombs() []bomb {
	const head = "From: a@outside.example\r\nTo: bomb@postroom.localhost\r\nSubject: Your code\r\n"
	const text, header, second = 2 << 20, 900 << 10, time.Second
	// lines repeats a unit up to size bytes, in lines as long as the server takes,
	// and begins each with start.
	lines := func(start, unit string, size int) string {
		line := start + strings.Repeat(unit, 60_000/len(unit)) + "\r\n"
		return strings.Repeat(line, size/len(line))
	}
	var letters strings.Builder
	for i := rune(0); letters.Len() < header; i++ {
		if letters.WriteRune(0x4e00 + i%0x5000); i%10_000 == 9999 {
			letters.WriteString("\r\n ")
		}
	}
	return []bomb{
		{"labels and colons", false, second, head + "\r\n" + lines("From:", ":", text)},
		{"dashes and numbers", false, second, head + "\r\n" + lines(strings.Repeat("-", 3000), " 123456", text)},
		{"a signing domain of letters", false, second, "DKIM-Signature: v=1; a=rsa-sha256; b=QQ==; bh=QQ==; h=From; s=s; d=" + letters.String() + "\r\n" + head + "\r\nx"},
		{"empty lines", false, second / 2, head + strings.Repeat("\r\n", 12<<20)},
		{"lines without a header", false, second / 2, strings.Repeat("x\r\n", 8<<20)},
		{"nested HTML", true, second, head + "Content-Type: text/html\r\n\r\n" + lines("", "<div class=gmail_quote><a href=https://a.example/b>", text)},
		{"labels and letters", true, second, head + "\r\n" + lines("", "From:é", text)},
		{"links to hosts of letters", true, second, head + "Content-Type: text/html\r\n\r\n<a href=\"http://" + letters.String() + "\">https://a.example</a>"},
		{"brackets in To", true, second, head + "To: " + lines(" ", "\"(<", header) + "\r\nx"},
		{"codes in lines", true, second, head + "\r\n" + strings.Repeat("code 482913 promo\r\n", text/19)},
		{"many parts", true, second, head + "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\nContent-Type: a/b\r\n\r\nx\r\n", 300_000)},
		{"broken base64", true, second, head + "Content-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n\r\n" + strings.Repeat("=!a*\r\n", 3<<20)},
	}
}

type bomb struct {
	name string
	long bool
	most time.Duration // of processor time
	mail string
}

// A message that is made to cost much costs at most a second of processor time, and
// delays the mail and the stream of another account by less than 200 ms. The delay depends
// on the machine's other work, so that only the long form, which runs alone, checks it.
func TestBombsDelayNoOtherAccount(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("measures time")
	}
	skiptest.UnderRace(t) // the program is built without it, and a slow client makes it read in small pieces
	onBoth(t, func(t *testing.T, data string, env []string) {
		dns := smtptest.NewDNS(t, smtptest.Zones{})
		s := serve(t, data, append(env, "POSTROOM_RATE_LIMITS=off", "POSTROOM_RESOLVER="+dns)...)
		run := func(args ...string) string {
			t.Helper()
			out, log, err := runCommand(t, data, env, args...)
			if err != nil {
				t.Fatalf("%v: %v\n%s", args, err, log)
			}
			return strings.TrimSpace(out)
		}
		account := strings.Fields(run("account", "create", "--name", "other"))[0]
		fields := strings.Fields(run("key", "create", "--account", account, "--name", "other"))
		key := fields[slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "sk_") })]
		s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"bomb"}`)
		s.call(t, key, http.MethodPost, "/v1/inboxes", `{"name":"other"}`)
		bombed, events := listen(t, s, s.key), listen(t, s, key)
		// probe returns how long a message to the other account takes until its
		// stream has it.
		probe := func() time.Duration {
			begin := time.Now()
			if !deliver(t, s.smtp, "other@postroom.localhost", "From: a@outside.example\r\nSubject: probe\r\n\r\nx") {
				t.FailNow()
			}
			<-events
			return time.Since(begin)
		}
		usual := time.Duration(0)
		for range 5 {
			usual = max(usual, probe())
		}
		for _, b := range bombs() {
			if b.long && !allBombs {
				continue
			}
			var cost, delay time.Duration
			for range 3 { // what else the machine does disturbs some
				before := processTime(t, s)
				done := make(chan struct{})
				go func() {
					defer close(done)
					if deliver(t, s.smtp, "bomb@postroom.localhost", b.mail) {
						<-bombed
					}
				}()
				delay = 0
				for under := allBombs; under; {
					delay = max(delay, probe())
					select {
					case <-done:
						under = false
					default:
					}
				}
				<-done
				cost = processTime(t, s) - before
				if cost <= b.most && (!allBombs || delay < usual+200*time.Millisecond) {
					break
				}
			}
			t.Logf("%s: %v of processor time with the probes, if any; the longest took %v, usually %v", b.name, cost, delay, usual)
			if cost > b.most {
				t.Errorf("%s: cost %v of processor time", b.name, cost)
			}
			if allBombs && delay >= usual+200*time.Millisecond {
				t.Errorf("%s: delayed another account by %v, usually %v", b.name, delay, usual)
			}
		}
	})
}

// listen opens a stream of events and returns a channel with one value for each
// message.received.
func listen(t *testing.T, s *served, key string) <-chan struct{} {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.api+"/v1/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req) //nolint:bodyclose // closed below
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("open the stream: %v, %v", res, err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	events := make(chan struct{}, 1000)
	go func() {
		lines := bufio.NewReader(res.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if strings.TrimSpace(line) == "event: message.received" {
				events <- struct{}{}
			}
		}
	}()
	return events
}

// deliver sends a message over SMTP, and reports whether it was taken.
func deliver(t *testing.T, addr, to, mail string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	c := textproto.NewConn(conn)
	say := func(want int, line string) bool {
		if line != "" {
			if err := c.PrintfLine("%s", line); err != nil {
				t.Error(err)
				return false
			}
		}
		if _, _, err := c.ReadResponse(want); err != nil {
			t.Errorf("%s: %v", line, err)
			return false
		}
		return true
	}
	if !say(220, "") || !say(250, "EHLO outside.example") || !say(250, "MAIL FROM:<a@outside.example>") || !say(250, "RCPT TO:<"+to+">") || !say(354, "DATA") {
		return false
	}
	w := c.DotWriter()
	if _, err := w.Write([]byte(mail)); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	return say(250, "")
}

// processTime returns the processor time that the service has used.
func processTime(t *testing.T, s *served) time.Duration {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	ticks := 0
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100 everywhere
}
