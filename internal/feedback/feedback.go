// Package feedback creates and reads signed addresses and links: the return
// path for bounces, the unsubscribe link, and the links that track opens and
// clicks.
//
// Each token identifies one message to one recipient and carries a signature. A
// token that was made with another installation's key, modified, or made for
// another purpose is invalid; no lookup is needed to reject it. Everyone who
// handled the message knows its tokens, so a token must not grant any other
// access.
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

// minKey is the minimum key length in bytes.
const minKey = 32

// Signer creates and reads tokens. It is safe for concurrent use.
type Signer struct{ key []byte }

// NewSigner returns a Signer with a secret key of at least 32 bytes, which all
// nodes of an installation share. It returns an error if the key is shorter.
func NewSigner(key []byte) (*Signer, error) {
	if len(key) < minKey {
		return nil, errors.New("feedback: the key is shorter than 32 bytes")
	}
	return &Signer{key}, nil
}

// Sent is one message to one recipient, by the sequence numbers of the store.
type Sent struct{ Account, Message, Recipient int64 }

// purpose is part of the signed data, so that a token cannot be used for
// another purpose.
type purpose byte

const (
	forReturn      purpose = 'r'
	forUnsubscribe purpose = 'u'
	forOpen        purpose = 'o'
	forClick       purpose = 'c'
)

// Sizes of signatures in bytes. The signature of a return path must fit into a
// local part.
const (
	returnMAC = 12
	linkMAC   = 16
)

func (s *Signer) mac(p purpose, body []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	_, _ = m.Write([]byte{byte(p)}) // a hash never returns an error
	_, _ = m.Write(body)
	return m.Sum(nil)
}

// sealed returns body with its signature in front.
func (s *Signer) sealed(p purpose, size int, body []byte) []byte {
	return append(s.mac(p, body)[:size:size], body...)
}

// open returns the body of a token if its signature is valid for the purpose.
func (s *Signer) open(p purpose, size int, token []byte) (body []byte, ok bool) {
	if len(token) < size {
		return nil, false
	}
	body = token[size:]
	return body, hmac.Equal(token[:size], s.mac(p, body)[:size])
}

// link returns a signed token for use in a URL path.
func (s *Signer) link(p purpose, body []byte) string {
	return base64.RawURLEncoding.EncodeToString(s.sealed(p, linkMAC, body))
}

func (s *Signer) readLink(p purpose, token string) (body []byte, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || strings.ContainsAny(token, "\r\n") { // the decoder ignores line breaks
		return nil, false
	}
	return s.open(p, linkMAC, b)
}

// base32Lower encodes tokens in local parts, whose case some servers change.
var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func putNumbers(ns ...int64) []byte {
	var b []byte
	for _, n := range ns {
		b = binary.AppendUvarint(b, uint64(n)) //nolint:gosec // sequence numbers are positive
	}
	return b
}

// takeNumbers reads the numbers that putNumbers wrote and returns the rest of
// b.
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
