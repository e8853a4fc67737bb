//go:build !faults

package main

// signedMessages is how many messages the other implementations verify.
const signedMessages = 40

// allBombs reports whether every kind of costly message is tried, and its delay checked.
const allBombs = false
