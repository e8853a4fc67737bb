//go:build faults

package main

// signedMails is how many mails others verify.
const signedMails = 1000
