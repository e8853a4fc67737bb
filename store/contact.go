package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
)

// Contact is someone whom an account writes to. An address is one contact's,
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
	oneContact  = `SELECT ` + contactColumns + ` FROM contacts WHERE account_id = $1 AND id = $2`
	saveContact = `UPDATE contacts SET email = :email, email_fold = :email_fold, first_name = :first_name, last_name = :last_name,
		metadata = :metadata, tags = :tags, updated_at = :updated_at WHERE seq = :seq`
	contactWritten = `account_id, id, email, email_fold, first_name, last_name, metadata, tags, created_at, updated_at`
	contactColumns = `seq, ` + contactWritten
)

// CreateContact stores c, which carries AccountID, Email, EmailFold, the names,
// Metadata and Tags, and returns it as stored. With once, the response is cached
// too. It returns ErrContactExists if the address is another contact's.
func (s *Store) CreateContact(ctx context.Context, c Contact, once *Once) (Contact, error) {
	return transact(ctx, s, "create contact", func(tx *sqlx.Tx) (Contact, error) {
		out, err := s.insertContact(ctx, tx, c)
		if err != nil {
			return c, err
		}
		if len(out) == 0 {
			return c, s.taken(ctx, tx, "address "+c.Email, ErrContactExists, once)
		}
		return out[0], s.cacheResponse(ctx, tx, once, out[0].ID, out[0])
	})
}

// insertContact returns the contact as stored, or none if another one has the address.
func (s *Store) insertContact(ctx context.Context, tx *sqlx.Tx, c Contact) (out []Contact, err error) {
	const q = `
		INSERT INTO contacts (` + contactWritten + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
		ON CONFLICT (account_id, email_fold) DO NOTHING
		RETURNING ` + contactColumns
	now := s.now()
	return out, s.prepared.Select(ctx, tx, &out, q, c.AccountID, NewID("con_", now), c.Email, c.EmailFold, c.FirstName, c.LastName,
		c.Metadata, c.Tags, NewTime(now))
}

// Contact returns the account's contact.
func (s *Store) Contact(ctx context.Context, accountID int64, id string) (Contact, error) {
	return readOne[Contact](ctx, s, "contact", oneContact, accountID, id)
}

// ListContacts returns a page of the account's contacts, newest first; with an
// emailFold, at most the one who has that address.
func (s *Store) ListContacts(ctx context.Context, accountID int64, emailFold string, p Page) (List[Contact], error) {
	scope := fmt.Sprintf("contacts/%d/%q", accountID, emailFold)
	w := conditions("account_id = ?", accountID)
	if emailFold != "" {
		w.add("email_fold = ?", emailFold)
	}
	return listBySeq(ctx, s, p, scope, "list contacts", `SELECT `+contactColumns+` FROM contacts`, w, "seq", func(c Contact) int64 { return c.Seq })
}

// UpdateContact lets edit change the contact and saves the address, the names,
// metadata and tags. It returns ErrContactExists if the address is another
// contact's.
func (s *Store) UpdateContact(ctx context.Context, accountID int64, id string, edit func(*Contact)) (Contact, error) {
	return transact(ctx, s, "update contact", func(tx *sqlx.Tx) (Contact, error) {
		c, err := editRow(ctx, s, tx, oneContact, []any{accountID, id}, func(c *Contact) error {
			edit(c)
			c.UpdatedAt = NewTime(s.now())
			return nil
		}, saveContact)
		if s.engine.Fault(err) == engine.Duplicate {
			err = fmt.Errorf("address %s: %w", c.Email, ErrContactExists)
		}
		return c, err
	})
}

// DeleteContact deletes the contact permanently, and the cached response that
// contains it. It returns ErrNotFound if the account has no contact with this id.
func (s *Store) DeleteContact(ctx context.Context, accountID int64, id string) error {
	return s.deleteRow(ctx, "contact", "contacts", accountID, id)
}

// ContactInput is one of a batch of contacts.
type ContactInput struct {
	Email     string
	EmailFold string
	// Edit changes a contact: an empty one if it is new, else the existing one.
	Edit func(*Contact)
}

// ContactCounts holds how many contacts a batch created and changed.
type ContactCounts struct {
	Created, Updated int
}

// UpsertContacts makes the contacts of a batch, and changes those whose address
// is known; the last of the inputs with one address counts. With once, the
// response is cached too: of a ContactCounts.
func (s *Store) UpsertContacts(ctx context.Context, accountID int64, in []ContactInput, once *Once) (ContactCounts, error) {
	in = lastOfEach(in)
	return transact(ctx, s, "upsert contacts", func(tx *sqlx.Tx) (counts ContactCounts, err error) {
		for _, i := range in {
			created, err := s.upsertContact(ctx, tx, accountID, i)
			switch {
			case err != nil:
				return counts, err
			case created:
				counts.Created++
			default:
				counts.Updated++
			}
		}
		return counts, s.cacheResponse(ctx, tx, once, "", counts)
	})
}

// lastOfEach returns the last input of each address, in the order of the
// addresses: two batches at the same time then wait for each other, and neither
// for what the other waits for.
func lastOfEach(in []ContactInput) []ContactInput {
	in = slices.Clone(in)
	slices.Reverse(in)
	slices.SortStableFunc(in, func(a, b ContactInput) int { return cmp.Compare(a.EmailFold, b.EmailFold) })
	return slices.CompactFunc(in, func(a, b ContactInput) bool { return a.EmailFold == b.EmailFold })
}

// upsertContact makes a contact, or changes the one that has the address.
func (s *Store) upsertContact(ctx context.Context, tx *sqlx.Tx, accountID int64, i ContactInput) (created bool, err error) {
	q := `SELECT ` + contactColumns + ` FROM contacts WHERE account_id = $1 AND email_fold = $2` + s.engine.LockRow()
	for { // another call may create or delete it between two statements
		var found []Contact
		if err := s.prepared.Select(ctx, tx, &found, q, accountID, i.EmailFold); err != nil {
			return false, err
		}
		if len(found) > 0 {
			c := found[0]
			i.Edit(&c)
			c.Email, c.UpdatedAt = i.Email, NewTime(s.now())
			_, err := tx.NamedExecContext(ctx, saveContact, c)
			return false, err
		}
		c := Contact{Metadata: JSON[json.RawMessage]{V: json.RawMessage(`{}`)}, Tags: JSON[Labels]{V: Labels{}}}
		i.Edit(&c)
		c.AccountID, c.Email, c.EmailFold = accountID, i.Email, i.EmailFold
		if found, err = s.insertContact(ctx, tx, c); err != nil || len(found) > 0 {
			return true, err
		}
	}
}
