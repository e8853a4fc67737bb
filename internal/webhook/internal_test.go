package webhook

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// The published example of Standard Webhooks (W7).
func TestSignatureIsThatOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	at, body := time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := sign([][]byte{key}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	two := strings.Fields(sign([][]byte{[]byte("another"), key}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body))
	if len(two) != 2 || two[1] != want || two[0] == want || !strings.HasPrefix(two[0], "v1,") {
		t.Errorf("two keys sign %v", two)
	}
}

func TestPausesStayWithinTheirJitter(t *testing.T) { // W10
	t.Parallel()
	now := time.Date(2026, 9, 23, 12, 0, 0, 0, time.UTC)
	for i, pause := range retryDelays {
		for jitter, factor := range map[float64]float64{-1: 0.9, 0: 1, 1: 1.1} {
			next, ok := nextAttempt(i+1, now, 0, jitter)
			want := time.Duration(float64(pause) * factor)
			if got := next.Sub(now); !ok || (got-want).Abs() > time.Millisecond {
				t.Errorf("after %d attempts with jitter %v: %v %v, want %v", i+1, jitter, got, ok, want)
			}
		}
	}
	if next, ok := nextAttempt(len(retryDelays)+1, now, time.Hour, 0); ok {
		t.Errorf("after the last attempt there is another at %v", next)
	}
}
