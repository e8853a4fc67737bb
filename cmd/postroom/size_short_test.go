//go:build !faults

package main

// signedMails is how many mails others verify.
const signedMails = 40

// allBombs says whether every kind of costly message is tried.
const allBombs = false
