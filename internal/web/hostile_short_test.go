//go:build !faults

package web_test

// everyMail selects the hostile messages to show: one of every seven.
const everyMail = 7
