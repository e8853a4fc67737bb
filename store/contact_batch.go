package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/batch"
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
		counts = ContactCounts{}
		for left := in; len(left) > 0; {
			made := map[string]bool{}
			for chunk := range slices.Chunk(left, contactChunk) {
				if err := s.insertContacts(ctx, tx, accountID, chunk, made); err != nil {
					return err
				}
			}
			known := slices.DeleteFunc(slices.Clone(left), func(i ContactInput) bool { return made[i.EmailFold] })
			edited, err := s.editContacts(ctx, tx, accountID, known)
			if err != nil {
				return err
			}
			counts.Created, counts.Updated = counts.Created+len(made), counts.Updated+len(edited)
			// Who was there when it was to be made may be deleted by now.
			left = slices.DeleteFunc(known, func(i ContactInput) bool { return edited[i.EmailFold] })
		}
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
			Metadata: JSON[json.RawMessage]{V: json.RawMessage(`{}`)}, Tags: JSON[Labels]{V: Labels{}},
		}
		i.Edit(&c)
		args = append(args, accountID, NewID("con_", now), i.Email, i.EmailFold, c.FirstName, c.LastName, c.Metadata, c.Tags,
			NewTime(now), NewTime(now))
	}
	var folds []string
	q := `INSERT INTO contacts (` + contactWritten + `) VALUES ` + batch.Values(s.engine, len(in), make([]string, width)) + `
		ON CONFLICT (account_id, email_fold) DO NOTHING RETURNING email_fold`
	if err := tx.SelectContext(ctx, &folds, q, args...); err != nil {
		return err
	}
	for _, fold := range folds {
		made[fold] = true
	}
	return nil
}

// editContacts changes the contacts who have these addresses, and returns the
// addresses of those that it found.
func (s *Store) editContacts(ctx context.Context, tx *sqlx.Tx, accountID int64, in []ContactInput) (map[string]bool, error) {
	const q = `SELECT ` + contactColumns + ` FROM contacts WHERE account_id = ? AND email_fold IN (?) ORDER BY email_fold`
	edited := make(map[string]bool, len(in))
	if len(in) == 0 {
		return edited, nil
	}
	byFold := make(map[string]ContactInput, len(in))
	folds := make([]string, 0, len(in))
	for _, i := range in {
		byFold[i.EmailFold] = i
		folds = append(folds, i.EmailFold)
	}
	var found []Contact
	if err := selectIn(ctx, tx, &found, q+s.engine.LockRow(), accountID, folds); err != nil {
		return nil, err
	}
	for _, c := range found {
		i := byFold[c.EmailFold]
		i.Edit(&c)
		c.Email, c.UpdatedAt = i.Email, NewTime(s.now())
		if err := saveContact(ctx, tx, c); err != nil {
			return nil, err
		}
		edited[c.EmailFold] = true
	}
	return edited, nil
}
