package main

import (
	"bytes"
	"fmt"
	"strings"
)

// digits mark the place of a message's number.
const digits = "000000000000"

// message is a text message with dot-stuffing and the final dot, and with places for a
// number that makes it different from all others.
type message struct {
	bytes  []byte
	places []int
}

const words = "the quick brown fox jumps over a lazy dog while no one at all is looking "

// newMessage creates a message of about size bytes, like those of programs: with a
// code, a link, and prose.
func newMessage(size int) *message {
	var b strings.Builder
	b.WriteString("Received: from app.bench.localhost (app.bench.localhost [192.0.2.7])\r\n" +
		"\tby out.bench.localhost with ESMTPS id " + digits + "; Tue, 2 Jan 2024 03:04:05 +0000\r\n" +
		"From: Bench Service <sender@bench.localhost>\r\nTo: Reader <reader@bench.localhost>\r\n" +
		"Subject: Your sign-in code, request " + digits + "\r\nDate: Tue, 2 Jan 2024 03:04:05 +0000\r\n" +
		"Message-ID: <" + digits + "@bench.localhost>\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" +
		"Hello,\r\n\r\nyour code is 482913. It is valid for 15 minutes.\r\n\r\n" +
		"Or follow this link: https://bench.localhost/verify?request=" + digits + "\r\n\r\n")
	for line := 0; b.Len() < size; line++ {
		n := line % len(words)
		fmt.Fprintf(&b, "%s\r\n", strings.TrimSpace(words[n:]+words[:n]))
	}
	b.WriteString(".\r\n")
	m := &message{bytes: []byte(b.String())}
	for at := 0; ; at += len(digits) {
		n := bytes.Index(m.bytes[at:], []byte(digits))
		if n < 0 {
			return m
		}
		at += n
		m.places = append(m.places, at)
	}
}

// number returns the message with this number.
func (m *message) number(n int64) []byte {
	for _, at := range m.places {
		for i, rest := len(digits)-1, n; i >= 0; i-- {
			m.bytes[at+i] = byte('0' + rest%10)
			rest /= 10
		}
	}
	return m.bytes
}
