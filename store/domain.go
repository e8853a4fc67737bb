package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
)

// DomainStatus says whether mail may be sent from a domain.
type DomainStatus string

// The states of a domain.
const (
	DomainPending  DomainStatus = "pending"  // its records are looked for
	DomainVerified DomainStatus = "verified" // mail is sent from it and taken for it
	DomainFailed   DomainStatus = "failed"   // nobody looks until somebody asks
)

// Domain is a domain that an account wants to send and receive mail with. Several
// accounts may ask for the same one; it is verified for one of them at most.
type Domain struct {
	Seq          int64                         `db:"seq"`
	AccountID    int64                         `db:"account_id"`
	ID           string                        `db:"id"`
	Name         string                        `db:"domain"` // in A-labels, lower case
	Token        string                        `db:"token"`  // in the record that shows whose it is
	Status       DomainStatus                  `db:"status"`
	Records      JSON[map[string]RecordStatus] `db:"records"` // as last looked up, by DomainRecord.key
	PendingSince Time                          `db:"pending_since"`
	DegradedAt   *Time                         `db:"degraded_at"` // since when a required record of a verified domain is gone
	NextCheckAt  *Time                         `db:"next_check_at"`
	VerifiedAt   *Time                         `db:"verified_at"`
	CreatedAt    Time                          `db:"created_at"`

	Keys []DomainKey `db:"-"` // oldest first
}

const domainColumns = `seq, account_id, id, domain, token, status, records, pending_since, degraded_at, next_check_at,
	verified_at, created_at`

// CreateDomain stores a pending domain of AccountID, Name and Token with its
// keys, and returns it as stored. ErrDomainTaken if the account has it already.
func (s *Store) CreateDomain(ctx context.Context, d Domain, keys []DKIMKey, once *Once) (Domain, error) {
	const q = `
		INSERT INTO domains (account_id, id, domain, token, status, records, pending_since, next_check_at, created_at)
		VALUES ($1, $2, $3, $4, 'pending', '{}', $5, $6, $5)
		ON CONFLICT (account_id, domain) DO NOTHING
		RETURNING ` + domainColumns
	now := s.now()
	var out []Domain
	err := s.inTx(ctx, "create domain", func(tx *sqlx.Tx) error {
		out = nil
		err := tx.SelectContext(ctx, &out, q, d.AccountID, NewID("dom_", now), d.Name, d.Token, NewTime(now), NewTime(now.Add(checkSoon)))
		if err != nil {
			return err
		}
		if len(out) == 0 {
			return s.domainTaken(ctx, tx, d.Name, once)
		}
		if err := s.addDomainKeys(ctx, tx, &out[0], keys); err != nil {
			return err
		}
		return s.saveAnswer(ctx, tx, once, out[0].ID, out[0])
	})
	if err != nil {
		return Domain{}, err
	}
	return out[0], nil
}

// domainTaken says why a domain cannot be added: by the same call, made twice at
// the same time, it was not taken but added.
func (s *Store) domainTaken(ctx context.Context, tx *sqlx.Tx, name string, once *Once) error {
	answered, err := s.answered(ctx, tx, once)
	if err != nil {
		return err
	}
	if answered {
		return fmt.Errorf("domain %s: %w", name, ErrIdempotencyRaced)
	}
	return fmt.Errorf("domain %s: %w", name, ErrDomainTaken)
}

// Domain returns the account's domain.
func (s *Store) Domain(ctx context.Context, accountID int64, id string) (Domain, error) {
	const q = `SELECT ` + domainColumns + ` FROM domains WHERE account_id = $1 AND id = $2`
	rows := make([]Domain, 1)
	err := s.read.GetContext(ctx, &rows[0], q, accountID, id)
	if err == nil {
		err = readDomainKeys(ctx, s.read, rows)
	}
	return rows[0], s.wrap(err, "domain")
}

// HasDomain says whether the account has added the domain of that name.
func (s *Store) HasDomain(ctx context.Context, accountID int64, name string) (bool, error) {
	const q = `SELECT count(*) FROM domains WHERE account_id = $1 AND domain = $2`
	var n int
	err := s.read.GetContext(ctx, &n, q, accountID, name)
	return n > 0, s.wrap(err, "domain")
}

// DomainOwner returns the account that a domain is verified for, or ErrNotFound.
// It is asked for every mail to a domain that is not the install's own.
func (s *Store) DomainOwner(ctx context.Context, name string) (accountID int64, err error) {
	const q = `SELECT account_id FROM domains WHERE domain = $1 AND status = 'verified'`
	err = s.reads.Scan(ctx, q, []any{name}, &accountID)
	return accountID, s.wrap(err, "domain")
}

// holdDomain keeps the account's verified domain as it is until the end of the
// transaction.
func (s *Store) holdDomain(ctx context.Context, tx *sqlx.Tx, accountID int64, name string) error {
	const q = `SELECT seq FROM domains WHERE account_id = $1 AND domain = $2 AND status = 'verified'`
	var seq int64
	err := tx.GetContext(ctx, &seq, q+s.engine.LockRow(), accountID, name)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("domain %s: %w", name, ErrDomainNotVerified)
	}
	return err
}

// ListDomains returns a page of the account's domains, newest first.
func (s *Store) ListDomains(ctx context.Context, accountID int64, p Page) (List[Domain], error) {
	const q = `SELECT ` + domainColumns + ` FROM domains WHERE account_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`
	scope := fmt.Sprintf("domains/%d", accountID)
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Domain]{}, err
	}
	var rows []Domain
	err = s.read.SelectContext(ctx, &rows, q, accountID, before, p.Limit+1)
	if err == nil {
		err = readDomainKeys(ctx, s.read, rows)
	}
	if err != nil {
		return List[Domain]{}, s.wrap(err, "list domains")
	}
	return page(s, scope, p.Limit, rows, func(d Domain) position { return position{seq: d.Seq} }), nil
}

// DeleteDomain suspends the inboxes that the account has on the domain, in short
// transactions, and removes the domain with its keys. When it fails in between,
// some inboxes are suspended and the domain is still there.
func (s *Store) DeleteDomain(ctx context.Context, accountID int64, id string) error {
	const (
		read    = `SELECT ` + domainColumns + ` FROM domains WHERE account_id = $1 AND id = $2`
		suspend = `UPDATE inboxes SET status = 'suspended', updated_at = $3 WHERE seq IN
			(SELECT seq FROM inboxes WHERE account_id = $1 AND seq > $4 AND domain = $2 AND status = 'active' ORDER BY seq LIMIT $5)
			RETURNING seq`
		answers = `DELETE FROM idempotency WHERE resource_id = $1`
		remove  = `DELETE FROM domains WHERE seq = $1` // its keys go with it
	)
	var some []int64
	for after, done := int64(0), false; !done; {
		err := s.inTx(ctx, "delete domain", func(tx *sqlx.Tx) error {
			var d Domain
			if err := tx.GetContext(ctx, &d, read+s.engine.LockRow(), accountID, id); err != nil {
				return err
			}
			some = nil
			if err := tx.SelectContext(ctx, &some, suspend, accountID, d.Name, NewTime(s.now()), after, sweepBatch); err != nil {
				return fmt.Errorf("suspend inboxes: %w", err)
			}
			if len(some) == sweepBatch {
				return nil
			}
			if _, err := tx.ExecContext(ctx, answers, d.ID); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, remove, d.Seq)
			return err
		})
		if err != nil {
			return err
		}
		if done = len(some) < sweepBatch; !done {
			after = slices.Max(some)
		}
	}
	return nil
}

// ReturnHost is the name below a domain that return paths are in when its SPF
// record and MX host are published there, and empty when they are not, or the
// domain is not verified for the account.
func (s *Store) ReturnHost(ctx context.Context, accountID int64, name string) (string, error) {
	const q = `SELECT records FROM domains WHERE domain = $1 AND account_id = $2 AND status = 'verified'`
	var d Domain
	err := s.reads.One(ctx, &d, q, name, accountID)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", s.wrap(err, "domain")
	}
	host := "bounces." + name
	for _, kind := range []string{"SPF", "RETURN_PATH"} {
		if d.StatusOf(DomainRecord{Kind: kind, Name: host}) != RecordVerified {
			return "", nil
		}
	}
	return host, nil
}
