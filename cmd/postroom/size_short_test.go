//go:build clients && !faults

package main

// signedMessages is how many messages the other implementations verify.
const signedMessages = 40
