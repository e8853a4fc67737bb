package contract_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/smtp"
	"strings"
	"sync"
	"testing"
	"time"
)

// watch receives all events of an installation, from the beginning, and
// validates each against the contract.
type watch struct {
	mu   sync.Mutex
	of   map[string]bool // type and resource id of the events so far
	more chan struct{}   // closed and replaced at each event
}

// watchEvents opens a stream and reads it until the test ends.
func watchEvents(t *testing.T, in *install) *watch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	res, err := in.check.Transport(t, in.base).RoundTrip(in.request(ctx, t, in.call("streamEvents")))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("open a stream of events: %v %v", res, err)
	}
	w := &watch{of: map[string]bool{}, more: make(chan struct{})}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer func() { _ = res.Body.Close() }()
		w.read(t, in, bufio.NewReader(res.Body))
		// The program stops when the test's context ends.
		if t.Context().Err() == nil {
			t.Error("the stream of events has ended")
		}
	})
	t.Cleanup(func() {
		cancel()
		reading.Wait()
	})
	return w
}

func (w *watch) read(t *testing.T, in *install, lines *bufio.Reader) {
	seen := map[string]bool{}
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if err := in.check.Event([]byte(data)); err != nil {
			t.Error(err)
		}
		var e struct {
			ID, Type string
			Data     struct{ ID string }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || seen[e.ID] {
			t.Errorf("%s arrived twice, or is malformed: %v", data, err)
		}
		seen[e.ID] = true
		w.note(e.Type + " " + e.Data.ID)
	}
}

func (w *watch) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[what] = true
	close(w.more)
	w.more = make(chan struct{})
}

// await waits for an event of that type about that resource.
func (w *watch) await(t *testing.T, typ, id string) {
	t.Helper()
	late := time.After(patience)
	for {
		w.mu.Lock()
		there, more := w.of[typ+" "+id], w.more
		w.mu.Unlock()
		if there {
			return
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("no event %s of %s", typ, id)
		}
	}
}

// outcomes maps the recipient names that simulate an outcome to its events.
var outcomes = map[string][]string{
	"ana": {"sent", "delivered"}, "hardbounce": {"bounced"}, "softbounce": {"bounced"}, "complained": {"complained"}, "failed": {"failed"},
}

// inHandlers are the events that need the reader of an email or a slow mail server. The
// tests of handlers have them, and hold them to the contract.
var inHandlers = map[string]bool{"contact.unsubscribed": true, "email.delivery_delayed": true}

// events triggers the events that no other step does, and checks which types
// were sent to the stream and to webhook endpoints.
func events(t *testing.T, w *world) {
	tester := w.newKey(t, `"mode":"test"`)
	in := w.newInbox(t)
	send := w.call("sendMessage").at("/v1/inboxes/" + in.ID + "/messages").as(tester.Key)
	email := w.call("sendEmail").as(tester.Key)
	for name, types := range outcomes {
		rest := `"to":"` + name + `@example.org","subject":"s","text":"t"}`
		m := read[message](t, w.send(t, send.saying(`{`+rest)).want(t, http.StatusCreated))
		e := read[message](t, w.send(t, email.saying(`{"from":"`+in.Address+`",`+rest)).want(t, http.StatusCreated))
		for _, typ := range types {
			w.events.await(t, "message."+typ, m.ID)
			w.events.await(t, "email."+typ, e.ID)
		}
	}
	for _, name := range []string{"opened", "clicked"} {
		e := read[message](t, w.send(t, email.saying(`{"from":"`+in.Address+`","to":"`+name+`@example.org","subject":"s","text":"t"}`)).want(t, http.StatusCreated))
		w.events.await(t, "email."+name, e.ID)
	}
	both := w.send(t, email.saying(`{"from":"`+in.Address+`","to":["ana@example.org","`+w.newSuppression(t)+`"],"subject":"s","text":"t"}`)).want(t, http.StatusCreated)
	w.events.await(t, "email.suppressed", read[message](t, both).ID)
	scheduled := w.newScheduled(t)
	w.events.await(t, "email.scheduled", scheduled)
	w.send(t, w.call("cancelEmail").at("/v1/emails/"+scheduled)).want(t, http.StatusOK)
	w.events.await(t, "email.cancelled", scheduled)
	for operation, typ := range map[string]string{"send": "draft.sent", "reject": "draft.rejected"} {
		d := w.newDraft(t)
		w.send(t, w.call(operation+"Draft").at("/v1/drafts/"+d.ID+"/"+operation))
		w.events.await(t, typ, d.ID)
	}
	w.send(t, w.call("createListEntry").saying(`{"direction":"inbound","action":"block","pattern":"*@spam.example","inbox_id":"`+in.ID+`"}`)).want(t, http.StatusCreated)
	if err := smtp.SendMail(w.smtp, nil, "ana@spam.example", []string{in.Address}, []byte("From: ana@spam.example\r\n\r\nHello\r\n")); err == nil {
		t.Error("a blocked message was accepted")
	}
	w.events.await(t, "message.blocked", "") // no resource has its id
	d := w.newDomain(t)
	w.dns.Set(t, d.published())
	w.verifyNow(t, d, "verified")
	w.dns.Set(t, nil)
	w.verifyNow(t, d, "verified")
	w.events.await(t, "domain.health.degraded", d.ID)
	for _, typ := range w.check.EventTypes() {
		if w.check.SeenEvents(typ) == 0 && !inHandlers[typ] {
			t.Errorf("no event %s was sent", typ)
		}
	}
}
