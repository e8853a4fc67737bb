//go:build crashpoints

package testclock

import (
	"os"
	"time"
)

// Variable is the environment variable that sets how far the clock is ahead, such as 200h or
// -90s.
const Variable = "POSTROOM_TEST_CLOCK_AHEAD"

var ahead, _ = time.ParseDuration(os.Getenv(Variable)) // 0 when it is not set

// Now returns the time of the moved clock.
func Now() time.Time { return time.Now().Add(ahead) }
