//go:build !faults

package web_test

// everyMail is which of the hostile mails are shown: each of that number.
const everyMail = 7
