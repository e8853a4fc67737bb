package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
)

// Contact is somebody whom an account writes to. An address is one contact's,
// in whatever case it is written.
type Contact struct {
	Seq       int64                 `db:"seq"`
	AccountID int64                 `db:"account_id"`
	ID        string                `db:"id"`
	Email     string                `db:"email"`
	EmailFold string                `db:"email_fold"` // the address without regard to case
	FirstName *string               `db:"first_name"`
	LastName  *string               `db:"last_name"`
	Metadata  JSON[json.RawMessage] `db:"metadata"` // an object, with its numbers as they were written
	Tags      JSON[Labels]          `db:"tags"`
	CreatedAt Time                  `db:"created_at"`
	UpdatedAt Time                  `db:"updated_at"`
}

const (
	contactWritten = `account_id, id, email, email_fold, first_name, last_name, metadata, tags, created_at, updated_at`
	contactColumns = `seq, ` + contactWritten
)

// CreateContact stores c, which carries AccountID, Email, EmailFold, the names,
// Metadata and Tags, and returns it as stored. With once, the answer is stored
// too. ErrContactExists if the address is another contact's.
func (s *Store) CreateContact(ctx context.Context, c Contact, once *Once) (Contact, error) {
	const q = `
		INSERT INTO contacts (` + contactWritten + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
		ON CONFLICT (account_id, email_fold) DO NOTHING
		RETURNING ` + contactColumns
	now := s.now()
	var out []Contact
	err := s.inTx(ctx, "create contact", func(tx *sqlx.Tx) error {
		out = nil
		err := tx.SelectContext(ctx, &out, q, c.AccountID, NewID("con_", now), c.Email, c.EmailFold, c.FirstName, c.LastName,
			c.Metadata, c.Tags, NewTime(now))
		if err != nil {
			return err
		}
		if len(out) == 0 {
			return s.taken(ctx, tx, c.Email, ErrContactExists, once)
		}
		return s.saveAnswer(ctx, tx, once, out[0].ID, out[0])
	})
	if err != nil {
		return Contact{}, err
	}
	return out[0], nil
}

// Contact returns the account's contact.
func (s *Store) Contact(ctx context.Context, accountID int64, id string) (Contact, error) {
	const q = `SELECT ` + contactColumns + ` FROM contacts WHERE account_id = $1 AND id = $2`
	var c Contact
	err := s.reads.One(ctx, &c, q, accountID, id)
	return c, s.wrap(err, "contact")
}

// ListContacts returns a page of the account's contacts, newest first; with an
// emailFold, at most the one who has that address.
func (s *Store) ListContacts(ctx context.Context, accountID int64, emailFold string, p Page) (List[Contact], error) {
	scope := fmt.Sprintf("contacts/%d/%q", accountID, emailFold)
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Contact]{}, err
	}
	var w where
	w.add("account_id = ?", accountID)
	w.add("seq < ?", before)
	if emailFold != "" {
		w.add("email_fold = ?", emailFold)
	}
	q := `SELECT ` + contactColumns + ` FROM contacts` + w.sql() + ` ORDER BY seq DESC LIMIT ` + w.arg(p.Limit+1)
	var rows []Contact
	if err := s.reads.All(ctx, &rows, q, w.args...); err != nil {
		return List[Contact]{}, s.wrap(err, "list contacts")
	}
	return page(s, scope, p.Limit, rows, func(c Contact) position { return position{seq: c.Seq} }), nil
}

// UpdateContact lets edit change the contact and saves the address, the names,
// metadata and tags. ErrContactExists if the address is another contact's.
func (s *Store) UpdateContact(ctx context.Context, accountID int64, id string, edit func(*Contact)) (Contact, error) {
	const q = `SELECT ` + contactColumns + ` FROM contacts WHERE account_id = $1 AND id = $2`
	var c Contact
	err := s.inTx(ctx, "update contact", func(tx *sqlx.Tx) error {
		c = Contact{}
		if err := tx.GetContext(ctx, &c, q+s.engine.LockRow(), accountID, id); err != nil {
			return err
		}
		edit(&c)
		c.UpdatedAt = NewTime(s.now())
		err := saveContact(ctx, tx, c)
		if s.engine.Fault(err) == engine.Duplicate {
			return fmt.Errorf("address %s: %w", c.Email, ErrContactExists)
		}
		return err
	})
	return c, err
}

func saveContact(ctx context.Context, tx *sqlx.Tx, c Contact) error {
	const q = `
		UPDATE contacts
		   SET email = $2, email_fold = $3, first_name = $4, last_name = $5, metadata = $6, tags = $7, updated_at = $8
		 WHERE seq = $1`
	_, err := tx.ExecContext(ctx, q, c.Seq, c.Email, c.EmailFold, c.FirstName, c.LastName, c.Metadata, c.Tags, c.UpdatedAt)
	return err
}

// DeleteContact deletes the contact for good, and the stored answer that tells
// of it. ErrNotFound when the account has no such contact.
func (s *Store) DeleteContact(ctx context.Context, accountID int64, id string) error {
	const q = `DELETE FROM contacts WHERE account_id = $1 AND id = $2`
	return s.inTx(ctx, "delete contact", func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, q, accountID, id)
		if err != nil {
			return err
		}
		if err := one(res, "contact "+id, ErrNotFound); err != nil {
			return err
		}
		return s.dropAnswers(ctx, tx, id)
	})
}
