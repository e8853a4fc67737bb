package faults_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/store/storetest"
)

const (
	// mostMemory is how much memory the service may use for large mail that it receives
	// and for downloads, mostForSends for large sends, both in MiB.
	mostMemory   = 300
	mostForSends = 700
	// atOnce is the number of clients in the tests of memory.
	atOnce = 8
	mib    = 1 << 20
)

// TestMemoryOfLargeMail receives messages of 10 MB over eight connections and downloads
// them, raw and their attachments.
func TestMemoryOfLargeMail(t *testing.T) {
	onEachEngineAlone(t, func(t *testing.T, in *installation) { passLarge(t, in, pick(60, 1000)) })
}

// TestMemoryOfLargeMailInABucket is TestMemoryOfLargeMail and
// TestMemoryOfLargeSends for messages stored in a bucket.
func TestMemoryOfLargeMailInABucket(t *testing.T) {
	in := newInstallation(t, storetest.SQLite)
	useBucket(t, in)
	alone.Lock()
	defer alone.Unlock()
	passLarge(t, in, pick(2*atOnce, 200))
	sendLarge(t, in, pick(atOnce/2, 50))
}

// passLarge receives that number of messages of 10 MB and downloads them.
func passLarge(t *testing.T, in *installation, messages int) {
	t.Helper()
	in.start()
	box := in.createInboxes("large")[0]
	largest := newLargeMessage(10 * mib)

	began := time.Now()
	inParallel(t, messages, func(ctx context.Context, i int) error { return receiveLarge(ctx, in, box, largest, i) })
	t.Logf("%d messages of %d MiB received in %s, peak %d MiB", messages, largest.size()/mib, seconds(time.Since(began)), in.peak())

	began = time.Now()
	all := in.messages("in")
	if len(all) != messages {
		t.Fatalf("%d messages", len(all))
	}
	inParallel(t, messages, func(ctx context.Context, i int) error { return readBack(ctx, in, all[i], largest) })
	t.Logf("downloaded in %s, peak %d MiB", seconds(time.Since(began)), in.peak())
	in.wantMemory(mostMemory)
}

// TestMemoryOfLargeSends sends messages with attachments of 40 MB, eight at a time,
// to another inbox.
func TestMemoryOfLargeSends(t *testing.T) {
	onEachEngineAlone(t, func(t *testing.T, in *installation) {
		in.start()
		sendLarge(t, in, pick(atOnce, 200))
	})
}

// sendLarge sends that number of messages with attachments of 40 MB to an inbox of the
// installation, and forwards half of them to the same inbox.
func sendLarge(t *testing.T, in *installation, sends int) {
	t.Helper()
	boxes := in.createInboxes("from", "to")
	content := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("attached "), 40*mib/9))
	body := fmt.Sprintf(`{"to":%q,"subject":"large","text":"See the file.","attachments":[{"filename":"a.bin","content":%q}]}`,
		boxes[1].Address, content)
	arrived := func() (all []message) {
		in.settle()
		for _, m := range in.messages("in") {
			if m.InboxID == boxes[1].ID {
				all = append(all, m)
			}
		}
		return all
	}

	began := time.Now()
	inParallel(t, sends, func(ctx context.Context, _ int) error {
		return in.post(ctx, "/v1/inboxes/"+boxes[0].ID+"/messages", body)
	})
	t.Logf("%d messages of %d MiB sent in %s, peak %d MiB", sends, len(body)/mib, seconds(time.Since(began)), in.peak())
	all := arrived()
	if len(all) != sends {
		t.Errorf("%d of %d arrived", len(all), sends)
	}
	inParallel(t, len(all)/2, func(ctx context.Context, i int) error {
		return in.post(ctx, "/v1/messages/"+all[i].ID+"/forward", `{"to":"`+boxes[1].Address+`"}`)
	})
	if n := len(arrived()); n != sends+len(all)/2 {
		t.Errorf("%d arrived, with the forwards", n)
	}
	t.Logf("with the forwards and all deliveries %s, peak %d MiB", seconds(time.Since(began)), in.peak())
	in.wantMemory(mostForSends)
}

// onEachEngineAlone is onEachEngine for tests that write much. It runs them one after
// the other.
func onEachEngineAlone(t *testing.T, test func(t *testing.T, in *installation)) {
	t.Helper()
	onEachEngine(t, func(t *testing.T, in *installation) {
		alone.Lock()
		defer alone.Unlock()
		test(t, in)
	})
}

var alone sync.Mutex

// largeMessage is a message whose one attachment makes it large.
type largeMessage struct {
	body    []byte   // without the first lines of the header
	content [32]byte // SHA-256 of the attachment
}

func newLargeMessage(size int) largeMessage {
	content := bytes.Repeat([]byte("0123456789abcdef content of an attachment \x00\xff"), size*3/4/44)
	var b bytes.Buffer
	b.WriteString("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee the file.\r\n--b\r\n" +
		"Content-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=a.bin\r\n" +
		"Content-Transfer-Encoding: base64\r\n\r\n")
	for text := base64.StdEncoding.EncodeToString(content); len(text) > 0; {
		n := min(76, len(text))
		b.WriteString(text[:n] + "\r\n")
		text = text[n:]
	}
	b.WriteString("--b--\r\n")
	return largeMessage{b.Bytes(), sha256.Sum256(content)}
}

func (m largeMessage) header(i int, to string) string {
	return fmt.Sprintf("From: <%s>\r\nTo: <%s>\r\nSubject: %d\r\nMessage-ID: <%[3]d@client.example>\r\n", sender, to, i)
}

func (m largeMessage) size() int { return len(m.body) }

// receiveLarge sends the message as number i.
func receiveLarge(ctx context.Context, in *installation, box inbox, m largeMessage, i int) error {
	c, err := dialSMTP(ctx, in.current().smtp)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.envelope(testMessage{from: sender, to: []string{box.Address}}); err != nil {
		return err
	}
	for _, part := range []string{m.header(i, box.Address), "", ".\r\n"} {
		b := []byte(part)
		if part == "" {
			b = m.body
		}
		if _, err := c.conn.Write(b); err != nil {
			return err
		}
	}
	return c.reply()
}

// readBack reads the message and downloads its raw form and its attachment.
func readBack(ctx context.Context, in *installation, got message, m largeMessage) error {
	api := in.current().caller()
	defer api.close()
	i, err := strconv.Atoi(got.Subject)
	if err != nil {
		return err
	}
	var whole struct {
		To          []struct{ Email string } `json:"to"`
		Attachments []struct{ ID string }    `json:"attachments"`
	}
	if err := api.call(ctx, http.StatusOK, &whole, http.MethodGet, "/v1/messages/"+got.ID, nil); err != nil {
		return err
	}
	a, err := api.do(ctx, http.MethodGet, "/v1/messages/"+got.ID+"/raw", nil)
	if err != nil || len(whole.Attachments) != 1 {
		return errors.Join(err, fmt.Errorf("%d attachments", len(whole.Attachments)))
	}
	want := sha256.New()
	_, _ = io.WriteString(want, m.header(i, whole.To[0].Email)) // a hash never fails
	_, _ = want.Write(m.body)
	if err := api.download(ctx, a.header.Get("Location"), want.Sum(nil)); err != nil {
		return fmt.Errorf("raw: %w", err)
	}
	var link struct {
		URL string `json:"download_url"`
	}
	path := "/v1/messages/" + got.ID + "/attachments/" + whole.Attachments[0].ID
	if err := api.call(ctx, http.StatusOK, &link, http.MethodGet, path, nil); err != nil {
		return err
	}
	return api.download(ctx, link.URL, m.content[:])
}

// download reads the target of a link and compares its SHA-256.
func (c *caller) download(ctx context.Context, link string, want []byte) error {
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+u.RequestURI(), nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	got := sha256.New()
	n, err := io.Copy(got, res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || !bytes.Equal(got.Sum(nil), want)) {
		err = fmt.Errorf("%s: %d bytes that differ from what was sent", res.Status, n)
	}
	return err
}

// post makes a call with this body, which must return 201.
func (in *installation) post(ctx context.Context, path, body string) error {
	api := in.current().caller()
	defer api.close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, api.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+firstKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := api.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s: %s: %.300s", path, res.Status, got)
	}
	return err
}

// inParallel calls do n times, several calls at a time.
func inParallel(t *testing.T, n int, do func(ctx context.Context, i int) error) {
	t.Helper()
	var next atomic.Int64
	var clients sync.WaitGroup
	for range atOnce {
		clients.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(t.Context(), i); err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
			}
		})
	}
	clients.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// peak returns the peak memory of the serving process, in MiB.
func (in *installation) peak() int {
	in.t.Helper()
	return statusBytes(in.t, in.current().cmd.Process.Pid, "VmHWM:") >> 20
}

func (in *installation) wantMemory(most int) {
	in.t.Helper()
	if peak := in.peak(); peak > most {
		in.t.Errorf("the service used %d MiB, want at most %d", peak, most)
	}
}
