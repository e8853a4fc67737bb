package smtp

import (
	"context"
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/store/storetest"
)

// linearReaders reads mail as the server does. The time of the database does not
// count, because other threads do its work.
func linearReaders(t *testing.T) []lineartest.Reader {
	t.Helper()
	s := storetest.Open(t, storetest.SQLite)
	in := storetest.Inbox(t, s)
	r := newReceiver(t, s)
	receive := func(mail string) {
		raw := r.NewSpool()
		defer r.close(context.Background(), raw)
		if _, err := raw.Write([]byte(mail)); err != nil {
			t.Error(err)
		}
		if _, err := r.Receive(context.Background(), Envelope{RcptTo: []string{in.Address}}, raw); err != nil {
			t.Error(err)
		}
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signing := []signingKey{{"s1", key}, {"s2", key}}
	return []lineartest.Reader{
		{Name: "Receiver.Receive text", Units: []string{":", " 123456", "From:", "> ", "-"}, Short: 2, Read: func(m string) { receive("Subject: x\r\n\r\n" + m) }},
		{Name: "Receiver.Receive html", Units: []string{"<p>", "x", "<a href=https://a.example/" + lineartest.Number + ">"}, Short: 2, Read: func(m string) { receive("Content-Type: text/html\r\n\r\n" + m) }},
		{Name: "Receiver.Receive header", Units: []string{"Received: x\r\n", "a: b\r\n"}, Read: func(m string) {
			if _, err := countReceived(strings.NewReader(m)); err != nil {
				t.Error(err)
			}
		}},
		{Name: "Spool.Write", Units: []string{"a", "\n"}, Read: func(m string) {
			raw := r.NewSpool()
			defer r.close(context.Background(), raw)
			if _, err := raw.Write([]byte(m)); err != nil {
				t.Error(err)
			}
		}},
		{Name: "Signer.Sign", Units: []string{"a", "\r\n", " ", "cc:\r\n", ":"}, Short: 4, Goroutines: true, Read: func(m string) {
			_, _ = sign("in.example", signing, strings.NewReader("From: a@b.example\r\nSubject: "+m+"\r\n\r\n"+m))
		}},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders(t)) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	const settings, bounded = "takes settings", "reads a command, which the server bounds"
	lineartest.Complete(t, linearReaders(t), map[string]string{
		"NewSigner": settings, "NewResolver": settings, "NewProber": settings, "NewQueue": settings, "NewReceiver": settings, "NewServer": settings,
		"ParseRelay": settings, "EnsureKeys": settings, "NewKeys": settings, "Records": settings, "KeyRecord": settings, "SplitTXT": settings,
		"Prober.Relay": "reads replies, which are bounded", "Prober.Host": "reads replies, which are bounded", "Prober.Domain": "reads replies, which are bounded",
		"ProbeError.Error": "shows an error", "ProbeError.Unwrap": "shows an error", "Reply.Error": "shows an error", "Reply.Temporary": "shows an error",
		"Queue.Run": "sends mail", "Queue.RunOnce": "sends mail", "Queue.Close": "ends connections", "Queue.Tally": "counts",
		"Receiver.NewSpool": "makes a spool", "Receiver.DeliverLocal": "reads mail as Receive does", "Receiver.Simulate": "reads mail as Receive does",
		"Receiver.Resolve": bounded, "Relay.Loopback": settings, "Relay.String": settings, "Server.Serve": bounded, "Server.Shutdown": "ends connections",
		"Spool.Size": "counts", "Spool.Bytes": "copies nothing", "Spool.Reader": "copies nothing", "Spool.Close": "removes a file",
	})
}
