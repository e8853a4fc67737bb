package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/jmoiron/sqlx"
)

// ContactInput is one of a batch of contacts.
type ContactInput struct {
	Email     string
	EmailFold string
	// Edit sets what is known of the contact: of a new one, which has nothing
	// yet, or of the one who has the address.
	Edit func(*Contact)
}

// ContactCounts are how many contacts a batch made and changed.
type ContactCounts struct {
	Created, Updated int
}

// UpsertContacts makes the contacts of a batch, and changes those whose address
// is known; the last of the inputs with one address counts. With once, the
// answer is stored too: of a ContactCounts.
func (s *Store) UpsertContacts(ctx context.Context, accountID int64, in []ContactInput, once *Once) (ContactCounts, error) {
	in = lastOfEach(in)
	var counts ContactCounts
	err := s.inTx(ctx, "upsert contacts", func(tx *sqlx.Tx) error {
		made := map[string]bool{}
		for chunk := range slices.Chunk(in, contactChunk) {
			if err := s.insertContacts(ctx, tx, accountID, chunk, made); err != nil {
				return err
			}
		}
		known := slices.DeleteFunc(slices.Clone(in), func(i ContactInput) bool { return made[i.EmailFold] })
		if err := s.editContacts(ctx, tx, accountID, known); err != nil {
			return err
		}
		counts = ContactCounts{Created: len(made), Updated: len(known)}
		return s.saveAnswer(ctx, tx, once, "", counts)
	})
	return counts, err
}

// contactChunk is how many contacts one statement inserts.
const contactChunk = 100

// lastOfEach returns the last input of each address, in the order of the
// addresses: two batches at the same time then wait for each other, and neither
// for what the other waits for.
func lastOfEach(in []ContactInput) []ContactInput {
	in = slices.Clone(in)
	slices.Reverse(in)
	slices.SortStableFunc(in, func(a, b ContactInput) int { return cmp.Compare(a.EmailFold, b.EmailFold) })
	return slices.CompactFunc(in, func(a, b ContactInput) bool { return a.EmailFold == b.EmailFold })
}

// insertContacts makes those contacts whose addresses nobody has, and adds them
// to made.
func (s *Store) insertContacts(ctx context.Context, tx *sqlx.Tx, accountID int64, in []ContactInput, made map[string]bool) error {
	const width = 10 // columns in contactWritten
	now := s.now()
	args := make([]any, 0, len(in)*width)
	for _, i := range in {
		c := Contact{
			Metadata: JSON[json.RawMessage]{V: json.RawMessage(`{}`)}, Tags: JSON[map[string]string]{V: map[string]string{}},
		}
		i.Edit(&c)
		args = append(args, accountID, NewID("con_", now), i.Email, i.EmailFold, c.FirstName, c.LastName, c.Metadata, c.Tags,
			NewTime(now), NewTime(now))
	}
	var folds []string
	q := bulkQuery(s.dialect, "contacts", contactWritten, width, len(in)) +
		` ON CONFLICT (account_id, email_fold) DO NOTHING RETURNING email_fold`
	if err := tx.SelectContext(ctx, &folds, q, args...); err != nil {
		return err
	}
	for _, fold := range folds {
		made[fold] = true
	}
	return nil
}

// editContacts changes the contacts who have these addresses.
func (s *Store) editContacts(ctx context.Context, tx *sqlx.Tx, accountID int64, in []ContactInput) error {
	const q = `SELECT ` + contactColumns + ` FROM contacts WHERE account_id = ? AND email_fold IN (?) ORDER BY email_fold`
	if len(in) == 0 {
		return nil
	}
	byFold := make(map[string]ContactInput, len(in))
	folds := make([]string, 0, len(in))
	for _, i := range in {
		byFold[i.EmailFold] = i
		folds = append(folds, i.EmailFold)
	}
	var found []Contact
	if err := selectIn(ctx, tx, &found, q+s.dialect.lockRow(), accountID, folds); err != nil {
		return err
	}
	for _, c := range found {
		i := byFold[c.EmailFold]
		i.Edit(&c)
		c.Email, c.UpdatedAt = i.Email, NewTime(s.now())
		if err := saveContact(ctx, tx, c); err != nil {
			return err
		}
	}
	return nil
}
