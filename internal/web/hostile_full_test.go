//go:build faults

package web_test

const everyMail = 1
