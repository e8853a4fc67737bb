//go:build faults

package main

// signedMessages is how many messages the other implementations verify, and at most are held
// against the rules for bulk senders.
const signedMessages = 1000
