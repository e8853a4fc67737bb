package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// How long a domain may wait for its records, or be without one, and how often
// it is looked at.
const (
	DomainPatience = 72 * time.Hour
	checkSoon      = time.Hour
	checkLater     = 24 * time.Hour
)

// RecordStatus is what the last look-up of a record found.
type RecordStatus string

// The states of a record.
const (
	RecordPending  RecordStatus = "pending" // nobody has looked, or the DNS has not answered yet
	RecordVerified RecordStatus = "verified"
	RecordMissing  RecordStatus = "missing"
)

// DomainRecord is a DNS record of a domain. In the result of a look-up, the
// status RecordPending says that the DNS did not answer.
type DomainRecord struct {
	Kind     string       `json:"record"`
	Type     string       `json:"type"`
	Name     string       `json:"name"`
	Value    string       `json:"value"`
	TTL      int          `json:"ttl"`
	Priority *int         `json:"priority"`
	Status   RecordStatus `json:"status"`
	Required bool         `json:"required"`
	Selector string       `json:"-"` // of a DKIM key's
}

func (r DomainRecord) key() string { return r.Kind + " " + r.Name }

// DomainEventData is what an event about a domain keeps.
type DomainEventData struct {
	DomainID   string         `json:"domain_id"`
	Domain     string         `json:"domain"`
	Status     DomainStatus   `json:"status"`
	CreatedAt  Time           `json:"created_at"`
	VerifiedAt *Time          `json:"verified_at"`
	Records    []DomainRecord `json:"dns_records"`
	Degraded   []DomainRecord `json:"degraded_records"`
}

// StatusOf is what the last look-up of r found.
func (d Domain) StatusOf(r DomainRecord) RecordStatus {
	if status, ok := d.Records.V[r.key()]; ok {
		return status
	}
	return RecordPending
}

// ClaimDomains takes up to limit domains whose records are due to be looked up.
// Pushing the next look-up ahead is the claim.
func (s *Store) ClaimDomains(ctx context.Context, limit int) ([]Domain, error) {
	now := s.now()
	q := `WITH due AS MATERIALIZED (
			SELECT seq FROM domains WHERE next_check_at <= $1 ORDER BY next_check_at LIMIT $3` + s.engine.SkipLocked() + `)
		UPDATE domains SET next_check_at = $2 WHERE seq IN (SELECT seq FROM due) RETURNING ` + domainColumns
	var rows []Domain
	err := s.inTx(ctx, "claim domains", func(tx *sqlx.Tx) error {
		rows = nil
		if err := tx.SelectContext(ctx, &rows, q, NewTime(now), NewTime(now.Add(checkSoon)), limit); err != nil {
			return err
		}
		return readDomainKeys(ctx, tx, rows)
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// RecordCheck keeps what a look-up of all records of d found, and what follows
// for d, its keys and, when a required record of a verified domain is gone, the
// event. asked says that somebody asked for the look-up, which begins a failed
// domain's wait anew. ErrNotFound when d has been deleted meanwhile.
func (s *Store) RecordCheck(ctx context.Context, d Domain, found []DomainRecord, asked bool) (Domain, error) {
	const (
		// All that ask for the name: they are looked at one after the other, so
		// that one gets it.
		claims = `SELECT ` + domainColumns + ` FROM domains WHERE domain = $1 ORDER BY seq`
		save   = `UPDATE domains SET status = $2, records = $3, pending_since = $4, degraded_at = $5, next_check_at = $6, verified_at = $7
			WHERE seq = $1`
	)
	var rows []Domain
	var lost []DomainRecord
	err := s.inTx(ctx, "record a look-up", func(tx *sqlx.Tx) error {
		var all []Domain
		if err := tx.SelectContext(ctx, &all, claims+s.engine.LockRow(), d.Name); err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(o Domain) bool { return o.Seq == d.Seq })
		if i < 0 {
			return fmt.Errorf("domain %s: %w", d.ID, ErrNotFound)
		}
		rows = all[i : i+1]
		if err := readDomainKeys(ctx, tx, rows); err != nil {
			return err
		}
		taken := slices.ContainsFunc(all, func(o Domain) bool { return o.Seq != d.Seq && o.Status == DomainVerified })
		now, one := NewTime(s.now()), &rows[0]
		var err error
		if one.Keys, err = s.noteKeys(ctx, tx, one.Keys, foundSelectors(found), now); err != nil {
			return err
		}
		lost = one.judge(found, taken, asked, now)
		if _, err := tx.ExecContext(ctx, save, one.Seq, one.Status, one.Records, one.PendingSince, one.DegradedAt, one.NextCheckAt, one.VerifiedAt); err != nil {
			return err
		}
		return s.domainEvent(ctx, tx, *one, found, lost)
	})
	if err != nil {
		return Domain{}, err
	}
	if len(lost) > 0 {
		s.changed([]topic{{kind: topicEvents}, {kind: topicWebhooks}}, 1)
	}
	return rows[0], nil
}

func foundSelectors(found []DomainRecord) map[string]bool {
	selectors := map[string]bool{}
	for _, r := range found {
		if r.Selector != "" && r.Status == RecordVerified {
			selectors[r.Selector] = true
		}
	}
	return selectors
}

// judge moves d to the state that follows from a look-up, and returns the
// required records that a verified domain has lost since the last one. Records
// that the DNS did not tell of stay as they were, and alone change no state.
func (d *Domain) judge(found []DomainRecord, taken, asked bool, now Time) (lost []DomainRecord) {
	before := d.Records.V
	d.Records.V = maps.Clone(before)
	if d.Records.V == nil {
		d.Records.V = map[string]RecordStatus{}
	}
	whole, gone := true, false
	for _, r := range found {
		if r.Status != RecordPending {
			d.Records.V[r.key()] = r.Status
		}
		if !r.Required {
			continue
		}
		whole = whole && r.Status == RecordVerified
		gone = gone || r.Status == RecordMissing
		if d.Status == DomainVerified && r.Status == RecordMissing && before[r.key()] == RecordVerified {
			lost = append(lost, r)
		}
	}
	d.forget(found)
	switch {
	case d.Status == DomainVerified && whole:
		d.DegradedAt = nil
	case d.Status == DomainVerified && gone && d.DegradedAt == nil:
		d.DegradedAt = &now
	case d.Status == DomainVerified:
		if gone && !asked && !now.Before(d.DegradedAt.Add(DomainPatience)) {
			d.Status, d.DegradedAt = DomainFailed, nil
		}
	case whole && !taken:
		d.Status, d.VerifiedAt = DomainVerified, &now
	case asked && (d.Status == DomainFailed || d.waitedLong(now)):
		d.Status, d.PendingSince = DomainPending, now
	case d.Status == DomainPending && d.waitedLong(now):
		d.Status = DomainFailed
	}
	d.NextCheckAt = d.nextCheck(now)
	return lost
}

func (d *Domain) waitedLong(now Time) bool { return !now.Before(d.PendingSince.Add(DomainPatience)) }

// forget drops what is known of records that the domain no longer needs, such as
// that of a key that has gone.
func (d *Domain) forget(needed []DomainRecord) {
	keys := map[string]bool{}
	for _, r := range needed {
		keys[r.key()] = true
	}
	maps.DeleteFunc(d.Records.V, func(key string, _ RecordStatus) bool { return !keys[key] })
}

// nextCheck is when to look again: verified domains daily, those that wait for a
// record hourly, and failed ones when somebody asks.
func (d *Domain) nextCheck(now Time) *Time {
	wait := checkSoon
	switch {
	case d.Status == DomainFailed:
		return nil
	case d.Status == DomainVerified && d.DegradedAt == nil && !slices.ContainsFunc(d.Keys, DomainKey.Waits):
		wait = checkLater
	}
	next := NewTime(now.Add(wait))
	return &next
}

// domainEvent writes the event about records that d has lost; without any there
// is none.
func (s *Store) domainEvent(ctx context.Context, tx *sqlx.Tx, d Domain, found, lost []DomainRecord) error {
	const q = `INSERT INTO events (account_id, id, type, test_mode, data, created_at) VALUES ($1, $2, $3, $4, $5, $6)`
	if len(lost) == 0 {
		return nil
	}
	all := slices.Clone(found)
	for i := range all {
		all[i].Status = d.StatusOf(all[i])
	}
	data, err := json.Marshal(DomainEventData{
		DomainID: d.ID, Domain: d.Name, Status: d.Status, CreatedAt: d.CreatedAt, VerifiedAt: d.VerifiedAt, Records: all, Degraded: lost,
	})
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	now := NewTime(s.now())
	id := NewID("evt_", now.Time)
	if _, err = tx.ExecContext(ctx, q, d.AccountID, id, EventDomainDegraded, false, string(data), now); err != nil {
		return errIn("insert event", err)
	}
	_, err = s.tellWebhooks(ctx, tx, []told{{account: d.AccountID, id: id, typ: EventDomainDegraded}}, now)
	return err
}
