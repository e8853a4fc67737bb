package queue

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/outbound"
)

// signedFields are the header fields that are signed if present.
var signedFields = []string{
	"From", "To", "Cc", "Subject", "Date", "Message-ID", "Reply-To", "Sender", "In-Reply-To", "References",
	"MIME-Version", "Content-Type", "Content-Transfer-Encoding",
	"List-Id", "List-Help", "List-Unsubscribe", "List-Unsubscribe-Post", "List-Subscribe", "List-Post", "List-Owner",
	"List-Archive",
}

// oversigned fields are listed once more than they occur. Adding another one,
// which mail software might show instead, breaks the signature (RFC 6376
// section 8.15).
var oversigned = []string{"From", "Subject"}

// sign returns one DKIM-Signature field per key, relaxed/relaxed. It reads the
// message once and hashes it with the line ends that dotWriter sends.
func sign(domain string, keys []signingKey, message io.Reader) (string, error) {
	s := &signing{domain: domain, keys: keys}
	defer s.abort()
	lines := outbound.DotWriter{W: bufio.NewWriterSize(s, 8<<10), Unstuffed: true}
	if _, err := io.Copy(&lines, message); err != nil {
		return "", fmt.Errorf("DKIM: read the message: %w", err)
	}
	if err := lines.End(); err != nil {
		return "", fmt.Errorf("DKIM: %w", err)
	}
	return s.signatures()
}

// signing collects the header of a message, then passes the signed fields and
// the body to one signer per key.
type signing struct {
	domain string
	keys   []signingKey

	header  []byte
	signers []*dkim.Signer
	body    io.Writer // nil before the end of the header
}

func (s *signing) Write(p []byte) (int, error) {
	if s.body != nil {
		return s.body.Write(p)
	}
	searched := max(0, len(s.header)-len("\r\n\r"))
	s.header = append(s.header, p...)
	end := bytes.Index(s.header[searched:], []byte("\r\n\r\n"))
	switch {
	case end >= 0:
		end += searched + len(smtp.CRLF)
	case len(s.header) > maxSignedHeader:
		return 0, errors.New("header too large to sign")
	default:
		return len(p), nil
	}
	if err := s.start(string(s.header[:end])); err != nil {
		return 0, err
	}
	if _, err := s.body.Write(s.header[end+len(smtp.CRLF):]); err != nil {
		return 0, err
	}
	s.header = nil
	return len(p), nil
}

// unfold puts every field on one line. The relaxed form of a field does not
// change, and the library reads long fields in linear time only when they are
// not folded.
var unfold = strings.NewReplacer("\r\n ", " ", "\r\n\t", "\t")

// start creates the signers and passes them the signed fields.
func (s *signing) start(header string) error {
	var names []string
	var signed bytes.Buffer
	fields := strings.SplitAfter(unfold.Replace(header), "\r\n")
	for _, name := range signedFields {
		count := 0
		for _, field := range fields {
			if isField(field, name) {
				signed.WriteString(field)
				count++
			}
		}
		if slices.Contains(oversigned, name) {
			count++
		}
		names = append(names, slices.Repeat([]string{name}, min(count, maxSignedRepeats))...)
	}
	signed.Write(smtp.CRLF)
	var all []io.Writer
	for _, k := range s.keys {
		signer, err := dkim.NewSigner(&dkim.SignOptions{
			Domain: s.domain, Selector: k.selector, Signer: k.key, HeaderKeys: names,
			HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
		})
		if err != nil {
			return fmt.Errorf("key %s: %w", k.selector, err)
		}
		s.signers, all = append(s.signers, signer), append(all, signer)
	}
	s.body = io.MultiWriter(all...)
	_, err := s.body.Write(signed.Bytes())
	return err
}

// signatures returns the DKIM-Signature fields once the message is written.
func (s *signing) signatures() (string, error) {
	if s.body == nil {
		return "", errors.New("DKIM: the header of the message does not end")
	}
	var all strings.Builder
	for i, signer := range s.signers {
		if err := signer.Close(); err != nil {
			return "", fmt.Errorf("DKIM key %s: %w", s.keys[i].selector, err)
		}
		all.WriteString(signer.Signature())
	}
	return all.String(), nil
}

// abort ends the goroutines of the signers. It has no effect on signers that
// are closed.
func (s *signing) abort() {
	for _, signer := range s.signers {
		_ = signer.Close()
	}
}

func isField(field, name string) bool {
	if len(field) <= len(name) || !strings.EqualFold(field[:len(name)], name) {
		return false
	}
	return strings.HasPrefix(strings.TrimLeft(field[len(name):], " \t"), ":")
}
