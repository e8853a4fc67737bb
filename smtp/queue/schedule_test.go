package queue

import (
	"testing"
	"time"
)

// Until the message is handed over, an attempt has time for a connection, the banner,
// EHLO, MAIL and RCPT, and DATA, as RFC 5321 section 4.5.3.2 asks for.
func TestAttemptHasTimeForItsSteps(t *testing.T) {
	t.Parallel()
	if sum := 30*time.Second + 4*5*time.Minute + 2*time.Minute; attemptTime < sum {
		t.Errorf("an attempt has %v, and its steps may take %v", attemptTime, sum)
	}
}
