package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/internal/mail"
)

// withContent says how much of the content a query for messages reads.
type withContent int

const (
	noContent    withContent = iota
	itsSummary               // andSummary
	wholeContent             // andContent
)

// messageRow reads rows of messageColumns, and the columns of the content after
// them. Pages have many rows: reading them by reflection, as sqlx does, costs more
// than the query.
type messageRow struct {
	m       Message
	content Content
	found   number // message_seq of the content, 0 for none
	dest    []any
}

func newMessageRow(with withContent) *messageRow {
	r := &messageRow{}
	m, c := &r.m, &r.content
	r.dest = []any{
		(*number)(&m.Seq), (*number)(&m.AccountID), (*number)(&m.InboxSeq), &m.InboxID, (*number)(&m.ThreadSeq), &m.ThreadID, &m.ID,
		(*string)(&m.Direction), (*string)(&m.Status), &m.TestMode, &m.FromEmail, &m.Addresses, &m.Subject, &m.HeaderID, &m.Refs,
		&m.Automated, &m.HasCode, &m.HasLink, &m.Truncated, orNil[string]{&m.Tag}, orNil[string]{&m.DeliveredTo}, (*number)(&m.Size), &m.CreatedAt,
		orNil[Time]{&m.SentAt}, orNil[Time]{&m.DeliveredAt}, orNil[Time]{&m.ExpiredAt}, (*shortNumber)(&m.RetentionDays),
	}
	if with >= itsSummary {
		r.dest = append(r.dest, &r.found, orEmptyText{&c.Snippet}, orNil[JSON[mail.Extraction]]{&c.Extracted},
			orNil[JSON[mail.AuthResult]]{&c.Auth}, orEmptyJSON[[]mail.Attachment]{&c.Attachments})
	}
	if with == wholeContent {
		r.dest = append(r.dest, &c.Raw, orNil[string]{&c.BlobKey}, orNil[string]{&c.Signature}, orNil[JSON[Body]]{&c.Body})
	}
	return r
}

// readMessages runs a query for messageColumns and what it has of the content.
func (s *Store) readMessages(ctx context.Context, size int, q string, with withContent, args ...any) ([]Message, error) {
	rows, err := s.read.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	ms := make([]Message, 0, size)
	r := newMessageRow(with)
	for rows.Next() {
		r.m, r.content = Message{}, Content{}
		if err := rows.Scan(r.dest...); err != nil {
			return nil, err
		}
		s.expireRead(&r.m)
		if r.found != 0 && r.m.ExpiredAt == nil {
			c := r.content
			c.MessageSeq = int64(r.found)
			r.m.Content = &c
		}
		ms = append(ms, r.m)
	}
	return ms, rows.Err()
}

// number and shortNumber are integers that database/sql fills in without
// reflection; NULL is 0.
type (
	number      int64
	shortNumber int
)

func (n *number) Scan(src any) error {
	v, ok := src.(int64)
	if !ok && src != nil {
		return fmt.Errorf("scan %T into a number", src)
	}
	*n = number(v)
	return nil
}

func (n *shortNumber) Scan(src any) error {
	var v number
	err := v.Scan(src)
	*n = shortNumber(v)
	return err
}

// orNil is a column that may be NULL.
type orNil[T any] struct{ to **T }

func (o orNil[T]) Scan(src any) error {
	if src == nil {
		return nil // the row was empty before
	}
	v := new(T)
	*o.to = v
	switch v := any(v).(type) {
	case interface{ Scan(src any) error }:
		return v.Scan(src)
	case *string:
		return orEmptyText{v}.Scan(src)
	}
	return fmt.Errorf("scan %T into %T", src, v)
}

// orEmptyText is a text column that is NULL when a joined row is missing.
type orEmptyText struct{ to *string }

func (o orEmptyText) Scan(src any) error {
	switch v := src.(type) {
	case nil:
	case string:
		*o.to = v
	case []byte:
		*o.to = string(v)
	default:
		return fmt.Errorf("scan %T into a text", src)
	}
	return nil
}

// orEmptyJSON is a JSON column that is NULL when a joined row is missing.
type orEmptyJSON[T any] struct{ to *JSON[T] }

func (o orEmptyJSON[T]) Scan(src any) error {
	if src == nil {
		return nil
	}
	return o.to.Scan(src)
}

// decode reads the JSON of the columns that every message has. It returns false
// for a type or text that is left to encoding/json, which takes several times
// as long.
func decode(b []byte, v any) bool {
	var read func(d *jx.Decoder, key []byte) error
	switch v := v.(type) {
	case *mail.Addresses:
		*v = mail.Addresses{}
		read = func(d *jx.Decoder, key []byte) error {
			switch string(key) {
			case "from":
				if d.Next() == jx.Null {
					return d.Null()
				}
				v.From = &mail.Address{}
				return decodeAddress(d, v.From)
			case "to":
				return decodeAddresses(d, &v.To)
			case "cc":
				return decodeAddresses(d, &v.Cc)
			case "bcc":
				return decodeAddresses(d, &v.Bcc)
			case "reply_to":
				return decodeAddresses(d, &v.ReplyTo)
			}
			return d.Skip()
		}
	case *mail.AuthResult:
		*v = mail.AuthResult{}
		read = func(d *jx.Decoder, key []byte) error {
			switch string(key) {
			case "spf":
				return decodeText(d, &v.SPF)
			case "dkim":
				return decodeText(d, &v.DKIM)
			case "dmarc":
				return decodeText(d, &v.DMARC)
			case "internal":
				return decodeText(d, &v.Internal)
			case "account":
				return decodeText(d, &v.Account)
			case "field":
				return decodeText(d, &v.Field)
			}
			return d.Skip()
		}
	case *mail.Extraction:
		*v = mail.Extraction{}
		read = func(d *jx.Decoder, key []byte) error {
			switch string(key) {
			case "otp":
				return decodeTextOrNil(d, &v.OTP)
			case "codes":
				return decodeTexts(d, &v.Codes)
			case "links":
				return decodeTexts(d, &v.Links)
			case "action_link":
				return decodeTextOrNil(d, &v.ActionLink)
			}
			return d.Skip()
		}
	case *References:
		*v = References{}
		read = func(d *jx.Decoder, key []byte) error {
			switch string(key) {
			case "in_reply_to":
				return decodeTexts(d, &v.InReplyTo)
			case "references":
				return decodeTexts(d, &v.References)
			}
			return d.Skip()
		}
	case *Body:
		*v = Body{}
		read = func(d *jx.Decoder, key []byte) (err error) {
			switch string(key) {
			case "text":
				return decodeText(d, &v.Text)
			case "html":
				return decodeText(d, &v.HTML)
			case "reply":
				return decodeTextOrNil(d, &v.Reply)
			case "from_html":
				v.FromHTML, err = d.Bool()
				return err
			case "derived":
				v.Derived, err = d.Bool()
				return err
			}
			return d.Skip()
		}
	case *[]mail.Attachment:
		if string(b) == "[]" {
			*v = []mail.Attachment{}
			return true
		}
		return false
	default:
		return false
	}
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(b)
	return d.ObjBytes(read) == nil
}

func decodeText(d *jx.Decoder, to *string) (err error) {
	*to, err = d.Str()
	return err
}

func decodeTextOrNil(d *jx.Decoder, to **string) error {
	if d.Next() == jx.Null {
		return d.Null()
	}
	s, err := d.Str()
	*to = &s
	return err
}

func decodeTexts(d *jx.Decoder, to *[]string) error {
	if d.Next() == jx.Null {
		return d.Null()
	}
	*to = []string{}
	return d.Arr(func(d *jx.Decoder) error {
		s, err := d.Str()
		*to = append(*to, s)
		return err
	})
}

func decodeAddresses(d *jx.Decoder, to *[]mail.Address) error {
	if d.Next() == jx.Null {
		return d.Null()
	}
	*to = []mail.Address{}
	return d.Arr(func(d *jx.Decoder) error {
		var a mail.Address
		err := decodeAddress(d, &a)
		*to = append(*to, a)
		return err
	})
}

func decodeAddress(d *jx.Decoder, to *mail.Address) error {
	return d.ObjBytes(func(d *jx.Decoder, key []byte) error {
		switch string(key) {
		case "name":
			return decodeText(d, &to.Name)
		case "email":
			return decodeText(d, &to.Email)
		}
		return d.Skip()
	})
}

// encode returns the JSON of a body. Unlike json.Marshal it leaves <, > and & as they
// are, because escaping would make HTML longer.
func (b *Body) encode() string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(b) // text and booleans can always be encoded
	return strings.TrimSuffix(out.String(), "\n")
}
