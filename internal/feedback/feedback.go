// Package feedback makes and reads the signed addresses by which the world
// answers mail: the return path that a bounce comes back to, the link that
// unsubscribes, and the links that tell of opens and clicks.
//
// Each names one mail to one recipient, and is its own proof: what was not made
// with the key of this install, or was changed, or was made for another purpose,
// is told apart without looking anything up, and means nothing. None of them is
// secret to those who handled that mail, so none may do more than speak of it.
package feedback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
)

// minKey is the shortest key, in bytes.
const minKey = 32

// Signer makes and reads addresses. It is safe for use by many goroutines.
type Signer struct{ key []byte }

// NewSigner returns a signer with a key of at least 32 bytes, which all nodes of
// an install share and nobody else knows.
func NewSigner(key []byte) (*Signer, error) {
	if len(key) < minKey {
		return nil, errors.New("feedback: the key is shorter than 32 bytes")
	}
	return &Signer{key}, nil
}

// Sent is one mail to one recipient, by the sequence numbers of the store.
type Sent struct{ Account, Message, Recipient int64 }

// purpose is part of what is signed, so that no address serves as another.
type purpose byte

const (
	forReturn      purpose = 'r'
	forUnsubscribe purpose = 'u'
	forOpen        purpose = 'o'
	forClick       purpose = 'c'
)

// Sizes of signatures, in bytes. That of a return path has to fit a local part.
const (
	returnMAC = 12
	linkMAC   = 16
)

func (s *Signer) mac(p purpose, body []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	_, _ = m.Write([]byte{byte(p)}) // a hash never fails
	_, _ = m.Write(body)
	return m.Sum(nil)
}

// sealed is a body with its signature in front.
func (s *Signer) sealed(p purpose, size int, body []byte) []byte {
	return append(s.mac(p, body)[:size:size], body...)
}

// open returns the body, if it was signed for the purpose.
func (s *Signer) open(p purpose, size int, token []byte) (body []byte, ok bool) {
	if len(token) < size {
		return nil, false
	}
	body = token[size:]
	return body, hmac.Equal(token[:size], s.mac(p, body)[:size])
}

// link makes a token that can stand in a path.
func (s *Signer) link(p purpose, body []byte) string {
	return base64.RawURLEncoding.EncodeToString(s.sealed(p, linkMAC, body))
}

func (s *Signer) readLink(p purpose, token string) (body []byte, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || strings.ContainsAny(token, "\r\n") { // which the decoder reads over
		return nil, false
	}
	return s.open(p, linkMAC, b)
}

// base32Lower is for local parts, of which some servers change the case.
var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func putNumbers(ns ...int64) []byte {
	var b []byte
	for _, n := range ns {
		b = binary.AppendUvarint(b, uint64(n)) //nolint:gosec // sequence numbers are positive
	}
	return b
}

// takeNumbers reads what putNumbers wrote and returns what follows.
func takeNumbers(b []byte, ns ...*int64) (rest []byte, ok bool) {
	for _, n := range ns {
		v, size := binary.Uvarint(b)
		if size <= 0 || v > 1<<63-1 {
			return nil, false
		}
		*n, b = int64(v), b[size:]
	}
	return b, true
}
