package inbound

import (
	"context"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/smtp"
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
		if _, err := r.Receive(context.Background(), smtp.Envelope{RcptTo: []string{in.Address}}, raw); err != nil {
			t.Error(err)
		}
	}
	return []lineartest.Reader{
		{Name: "Receiver.Receive text", Units: []string{":", " 123456", "From:", "> ", "-"}, Short: 2, Read: func(m string) { receive("Subject: x\r\n\r\n" + m) }},
		{Name: "Receiver.Receive html", Units: []string{"<p>", "x", "<a href=https://a.example/" + lineartest.Number + ">"}, Short: 2, Read: func(m string) { receive("Content-Type: text/html\r\n\r\n" + m) }},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders(t)) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	const bounded = "reads a command, which the server bounds"
	lineartest.Complete(t, linearReaders(t), map[string]string{
		"NewReceiver": "takes settings", "NewServer": "takes settings",
		"Receiver.NewSpool": "makes a spool", "Receiver.DeliverLocal": "reads mail as Receive does", "Receiver.Simulate": "reads mail as Receive does",
		"Receiver.Resolve": bounded, "Receiver.Reaches": "reads one address", "Server.Serve": bounded, "Server.Shutdown": "ends connections",
	})
}
