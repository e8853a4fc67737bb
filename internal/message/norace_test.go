//go:build !race

package message

// raceEnabled tells that the race detector makes everything slow.
const raceEnabled = false
