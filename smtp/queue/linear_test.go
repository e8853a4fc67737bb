package queue

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
)

func linearReaders(t *testing.T) []lineartest.Reader {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := []signingKey{{"s1", key}, {"s2", key}}
	return []lineartest.Reader{
		{Name: "Signer.Sign", Units: []string{"a", "\r\n", " ", "cc:\r\n", ":"}, Short: 4, Goroutines: true, Read: func(m string) {
			_, _ = sign("in.example", keys, strings.NewReader("From: a@b.example\r\nSubject: "+m+"\r\n\r\n"+m))
		}},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders(t)) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	const settings = "takes settings"
	lineartest.Complete(t, linearReaders(t), map[string]string{
		"NewSigner": settings, "New": settings, "EnsureKeys": settings, "NewKeys": settings, "Records": settings,
		"Queue.Run": "sends mail", "Queue.RunOnce": "sends mail", "Queue.Close": "ends connections", "Queue.Tally": "counts",
	})
}
