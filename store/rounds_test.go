//go:build !faults

package store_test

// rowsThatComeAndGo is how many messages are stored, and deleted again, while
// lists are read.
const rowsThatComeAndGo = 60
