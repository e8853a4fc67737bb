package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
)

// SuppressionReason is why an address is suppressed.
type SuppressionReason string

// The reasons of a suppression.
const (
	SuppressedHardBounce  SuppressionReason = "hard_bounce"
	SuppressedComplaint   SuppressionReason = "complaint"
	SuppressedUnsubscribe SuppressionReason = "unsubscribe"
	SuppressedManual      SuppressionReason = "manual"
)

// SuppressionCategory is the mail that is not sent to an address. Each category
// includes those after it.
type SuppressionCategory string

// The categories of a suppression.
const (
	SuppressAll       SuppressionCategory = "all"
	SuppressEmails    SuppressionCategory = "emails" // of /v1/emails, not messages of inboxes
	SuppressMarketing SuppressionCategory = "marketing"
)

// suppressing lists the categories that stop mail of a category, which is empty for
// a message of an inbox.
func suppressing(mail Category) []string {
	switch mail {
	case "":
		return []string{string(SuppressAll)}
	case CategoryMarketing:
		return []string{string(SuppressAll), string(SuppressEmails), string(SuppressMarketing)}
	}
	return []string{string(SuppressAll), string(SuppressEmails)}
}

// Suppression is an address that an account does not send to.
type Suppression struct {
	Seq       int64               `db:"seq"`
	AccountID int64               `db:"account_id"`
	ID        string              `db:"id"`
	Email     string              `db:"email"`
	EmailFold string              `db:"email_fold"` // one of mail.AddressSpellings; new ones have mail.CanonicalAddress
	Reason    SuppressionReason   `db:"reason"`
	Category  SuppressionCategory `db:"category"`
	Source    *string             `db:"source"` // id of the message, email or key that added it
	CreatedAt Time                `db:"created_at"`
}

const (
	suppressionWritten = `account_id, id, email, email_fold, reason, category, source, created_at`
	suppressionColumns = `seq, ` + suppressionWritten
	// widen updates an existing suppression. It never narrows it, and keeps the
	// reason of the widest one.
	widen = `
		ON CONFLICT (account_id, email_fold) DO UPDATE
		   SET reason = CASE WHEN ` + wider + ` THEN excluded.reason ELSE suppressions.reason END,
		       source = CASE WHEN ` + wider + ` THEN excluded.source ELSE suppressions.source END,
		       created_at = CASE WHEN ` + wider + ` THEN excluded.created_at ELSE suppressions.created_at END,
		       category = CASE WHEN ` + wider + ` THEN excluded.category ELSE suppressions.category END`
	wider = `(suppressions.category = 'marketing' AND excluded.category <> 'marketing'
		      OR suppressions.category = 'emails' AND excluded.category = 'all')`
)

// Suppress puts an address on the account's list; sup carries AccountID, Email,
// EmailFold, Reason, Category and Source. It returns the entry as stored. An address
// that is there keeps its entry, which is widened, and takes the new reason,
// when it was about marketing alone and sup is about all mail. With once, the
// response is cached too.
func (s *Store) Suppress(ctx context.Context, sup Suppression, once *Once) (Suppression, error) {
	const q = `INSERT INTO suppressions (` + suppressionWritten + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)` + widen + ` RETURNING ` + suppressionColumns
	now := s.now()
	var out Suppression
	err := s.inTx(ctx, "suppress", func(tx *sqlx.Tx) error {
		out = Suppression{}
		err := tx.GetContext(ctx, &out, q, sup.AccountID, NewID("sup_", now), sup.Email, sup.EmailFold, sup.Reason, sup.Category, sup.Source, NewTime(now))
		if err != nil {
			return err
		}
		return s.cacheResponse(ctx, tx, once, out.ID, out)
	})
	return out, err
}

// Addressee is a recipient of an account's mail.
type Addressee struct {
	AccountID int64
	EmailFold string   // one of mail.AddressSpellings
	Category  Category // of the email; empty for a message of an inbox
}

// SuppressedAmong reports for each address whether it is suppressed.
func (s *Store) SuppressedAmong(ctx context.Context, all []Addressee) ([]bool, error) {
	found := make([]bool, len(all))
	if len(all) == 0 {
		return found, nil
	}
	var w where
	pairs := make([]string, len(all))
	for i, a := range all {
		pairs[i] = "(cast(" + w.arg(a.AccountID) + " AS bigint), " + w.arg(a.EmailFold) + ")"
	}
	q := `SELECT account_id, email_fold, category FROM suppressions WHERE (account_id, email_fold) IN (VALUES ` + strings.Join(pairs, ", ") + `)`
	rows, err := readAll[Suppression](ctx, s, "who is suppressed", q, w.args...)
	if err != nil {
		return nil, err
	}
	for i, a := range all {
		found[i] = slices.ContainsFunc(rows, func(sup Suppression) bool {
			return sup.AccountID == a.AccountID && sup.EmailFold == a.EmailFold && slices.Contains(suppressing(a.Category), string(sup.Category))
		})
	}
	return found, nil
}

// ListSuppressions returns a page of the account's list, newest first.
func (s *Store) ListSuppressions(ctx context.Context, accountID int64, p Page) (List[Suppression], error) {
	return listBySeq(ctx, s, p, fmt.Sprintf("suppressions/%d", accountID), "list suppressions", `SELECT `+suppressionColumns+` FROM suppressions`,
		conditions("account_id = ?", accountID), "seq", func(sup Suppression) int64 { return sup.Seq })
}

// DeleteSuppression takes an address, in all of its spellings, off the account's list,
// and returns an entry that it had. It returns ErrNotFound if it was not there.
func (s *Store) DeleteSuppression(ctx context.Context, accountID int64, spellings ...string) (Suppression, error) {
	w := conditions("account_id = ?", accountID)
	w.in("email_fold", spellings)
	var deleted []Suppression
	err := s.inTx(ctx, "delete suppression", func(tx *sqlx.Tx) error {
		deleted = nil
		if err := tx.SelectContext(ctx, &deleted, `DELETE FROM suppressions`+w.sql()+` RETURNING `+suppressionColumns, w.args...); err != nil {
			return err
		}
		for _, sup := range deleted {
			if err := s.dropCachedResponses(ctx, tx, sup.ID); err != nil {
				return err
			}
		}
		if len(deleted) == 0 {
			return sql.ErrNoRows
		}
		return nil
	})
	if err != nil {
		return Suppression{}, err
	}
	return deleted[0], nil
}
