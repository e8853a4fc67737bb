//go:build !faults

package handlers_test

// raceRounds is how often mail races with the wait for it.
const raceRounds = 800
