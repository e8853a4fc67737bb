package smtp

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// maxSignedHeader is the largest header that is signed, in bytes.
const maxSignedHeader = 1 << 20

// signedFields are the header fields that are signed when they are there.
var signedFields = []string{
	"From", "To", "Cc", "Subject", "Date", "Message-ID", "Reply-To", "Sender", "In-Reply-To", "References",
	"MIME-Version", "Content-Type", "Content-Transfer-Encoding",
	"List-Id", "List-Help", "List-Unsubscribe", "List-Unsubscribe-Post", "List-Subscribe", "List-Post", "List-Owner",
	"List-Archive",
}

// oversigned are signed once more than they are there, so that nobody can add
// another one, which readers might show instead (RFC 6376 section 8.15).
var oversigned = []string{"From", "Subject"}

// digest is what all signatures of a mail have in common. Reading the mail and
// hashing its body is done once for all keys.
type digest struct {
	fields []string // the names in h=
	header []byte   // those fields as they are hashed
	body   string   // hash of the body, as in bh=
}

// digestOf reads a mail once. Memory does not grow with the body.
func digestOf(raw io.Reader) (digest, error) {
	r := bufio.NewReaderSize(raw, 8<<10)
	header, err := readFields(r)
	if err != nil {
		return digest{}, err
	}
	var d digest
	for _, name := range signedFields {
		// The last one of a name is signed first (RFC 6376 section 5.4.2).
		for _, field := range slices.Backward(header) {
			if isField(field, name) {
				d.fields = append(d.fields, name)
				d.header = append(relaxedField(d.header, field), crlf...)
			}
		}
		if slices.Contains(oversigned, name) {
			d.fields = append(d.fields, name)
		}
	}
	body := relaxedBody{hash: sha256.New(), out: make([]byte, 0, r.Size())}
	if _, err := r.WriteTo(&body); err != nil {
		return digest{}, fmt.Errorf("DKIM: read the body: %w", err)
	}
	d.body = base64.StdEncoding.EncodeToString(body.sum())
	return d, nil
}

// readFields reads a header with its empty line, and returns its fields with
// their line ends.
func readFields(r *bufio.Reader) (fields [][]byte, err error) {
	size, begins := 0, true
	for size <= maxSignedHeader {
		piece, err := r.ReadSlice('\n')
		size += len(piece)
		folded := !begins || len(piece) > 0 && (piece[0] == ' ' || piece[0] == '\t')
		switch {
		case begins && len(bytes.TrimRight(piece, "\r\n")) == 0 && err == nil:
			return fields, nil
		case folded && len(fields) > 0:
			last := &fields[len(fields)-1]
			*last = append(*last, piece...)
		default:
			fields = append(fields, bytes.Clone(piece))
		}
		begins = err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, fmt.Errorf("DKIM: read the header: %w", err)
		}
	}
	return nil, errors.New("DKIM: header too large to sign")
}

func isField(field []byte, name string) bool {
	if len(field) <= len(name) || !bytes.EqualFold(field[:len(name)], []byte(name)) {
		return false
	}
	rest := bytes.TrimLeft(field[len(name):], " \t")
	return len(rest) > 0 && rest[0] == ':'
}

// maxSignatureLine is how long the lines of a DKIM-Signature get.
const maxSignatureLine = 76

// sign returns the DKIM-Signature field of one key (RFC 6376 section 3.5).
func (d *digest) sign(domain string, k signingKey, now time.Time) (string, error) {
	algorithm, hash := "rsa-sha256", crypto.SHA256
	if _, ok := k.key.(ed25519.PrivateKey); ok {
		// The hash is what is signed, and not hashed again (RFC 8463 section 3).
		algorithm, hash = "ed25519-sha256", crypto.Hash(0)
	}
	var field bytes.Buffer
	fmt.Fprintf(&field, "DKIM-Signature: v=1; a=%s; c=relaxed/relaxed; t=%d;\r\n d=%s; s=%s;\r\n bh=%s;\r\n h=",
		algorithm, now.Unix(), domain, k.selector, d.body)
	line := len(" h=")
	for i, name := range d.fields {
		if i > 0 {
			field.WriteByte(':')
			line++
		}
		if line+len(name) >= maxSignatureLine {
			field.WriteString("\r\n ")
			line = 1
		}
		field.WriteString(name)
		line += len(name)
	}
	field.WriteString(";\r\n b=")
	h := sha256.New()
	_, _ = h.Write(d.header) // a hash never fails
	_, _ = h.Write(relaxedField(nil, field.Bytes()))
	signature, err := k.key.Sign(rand.Reader, h.Sum(nil), hash)
	if err != nil {
		return "", fmt.Errorf("DKIM key %s: %w", k.selector, err)
	}
	text := base64.StdEncoding.EncodeToString(signature)
	line = len(" b=")
	for len(text) > maxSignatureLine-line {
		field.WriteString(text[:maxSignatureLine-line] + "\r\n ")
		text, line = text[maxSignatureLine-line:], 1
	}
	field.WriteString(text + "\r\n")
	return field.String(), nil
}

// signatures are the DKIM-Signature fields of all keys, to stand before a mail.
func (d *digest) signatures(domain string, keys []signingKey, now time.Time) (string, error) {
	var all strings.Builder
	for _, k := range keys {
		field, err := d.sign(domain, k, now)
		if err != nil {
			return "", err
		}
		all.WriteString(field)
	}
	return all.String(), nil
}
