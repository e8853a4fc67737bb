package message

import "time"

// testDate is the date of mails in tests.
var testDate = time.Date(2026, 11, 13, 9, 14, 20, 0, time.UTC)
