//go:build faults

package store_test

const rowsThatComeAndGo = 10_000
