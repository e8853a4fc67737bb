package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// DomainStatus is the verification status of a domain.
type DomainStatus string

// The states of a domain.
const (
	DomainPending  DomainStatus = "pending"  // its records are looked for
	DomainVerified DomainStatus = "verified" // mail is sent from it and taken for it
	DomainFailed   DomainStatus = "failed"   // no one looks until someone asks
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
	Records      JSON[map[string]RecordLookup] `db:"records"` // as last looked up, by DomainRecord.key
	PendingSince Time                          `db:"pending_since"`
	DegradedAt   *Time                         `db:"degraded_at"` // since when a required record of a verified domain is missing
	NextCheckAt  *Time                         `db:"next_check_at"`
	VerifiedAt   *Time                         `db:"verified_at"`
	CreatedAt    Time                          `db:"created_at"`

	Keys []DomainKey `db:"-"` // oldest first
}

const (
	domainColumns = `seq, account_id, id, domain, token, status, records, pending_since, degraded_at, next_check_at,
		verified_at, created_at`
	oneDomain = `SELECT ` + domainColumns + ` FROM domains WHERE account_id = $1 AND id = $2`
)

// CreateDomain stores a pending domain of AccountID, Name and Token with its
// keys, and returns it as stored. It returns ErrDomainTaken if the account has it
// already.
func (s *Store) CreateDomain(ctx context.Context, d Domain, keys []DKIMKey, once *Once) (Domain, error) {
	const q = `
		INSERT INTO domains (account_id, id, domain, token, status, records, pending_since, next_check_at, created_at)
		VALUES ($1, $2, $3, $4, 'pending', '{}', $5, $6, $5)
		ON CONFLICT (account_id, domain) DO NOTHING
		RETURNING ` + domainColumns
	now := s.now()
	return transact(ctx, s, "create domain", func(tx *sqlx.Tx) (Domain, error) {
		out, err := getAll[Domain](ctx, tx, q, d.AccountID, NewID("dom_", now), d.Name, d.Token, NewTime(now), NewTime(now.Add(checkSoon)))
		switch {
		case err != nil:
			return d, err
		case len(out) == 0:
			return d, s.taken(ctx, tx, "domain "+d.Name, ErrDomainTaken, once)
		}
		if err := s.addDomainKeys(ctx, tx, out, keys); err != nil {
			return d, err
		}
		return out[0], s.cacheResponse(ctx, tx, once, out[0].ID, out[0])
	})
}

// Domain returns the account's domain.
func (s *Store) Domain(ctx context.Context, accountID int64, id string) (Domain, error) {
	rows, err := readAll[Domain](ctx, s, "domain", oneDomain, accountID, id)
	switch {
	case err != nil:
		return Domain{}, err
	case len(rows) == 0:
		return Domain{}, fmt.Errorf("domain: %w", ErrNotFound)
	}
	return rows[0], s.wrap(readDomainKeys(ctx, s.read, rows), "domain")
}

// HasDomain reports whether the account has added the domain with that name.
func (s *Store) HasDomain(ctx context.Context, accountID int64, name string) (bool, error) {
	const q = `SELECT count(*) FROM domains WHERE account_id = $1 AND domain = $2`
	n, err := readOne[int](ctx, s, "domain", q, accountID, name)
	return n > 0, err
}

// DomainOwner returns the account that a domain is verified for, or ErrNotFound.
// It is asked for every mail to a domain that is not the installation's own.
func (s *Store) DomainOwner(ctx context.Context, name string) (accountID int64, err error) {
	const q = `SELECT account_id FROM domains WHERE domain = $1 AND status = 'verified'`
	return readOne[int64](ctx, s, "domain", q, name)
}

// WildcardOwner returns the nearest of names, domains above one that is not verified,
// that is verified, and its account, or ErrNotFound.
func (s *Store) WildcardOwner(ctx context.Context, names []string) (accountID int64, name string, err error) {
	var w where
	w.in("domain", names)
	q := `SELECT account_id, domain FROM domains` + w.sql() + ` AND status = 'verified' ORDER BY length(domain) DESC LIMIT 1`
	err = s.read.QueryRowContext(ctx, q, w.args...).Scan(&accountID, &name)
	return accountID, name, s.wrap(err, "domain")
}

// lockDomain keeps the account's verified domain as it is until the end of the
// transaction.
func (s *Store) lockDomain(ctx context.Context, tx *sqlx.Tx, accountID int64, name string) error {
	const q = `SELECT seq FROM domains WHERE account_id = $1 AND domain = $2 AND status = 'verified'`
	_, err := getOne[int64](ctx, tx, q+s.engine.LockRow(), accountID, name)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("domain %s: %w", name, ErrDomainNotVerified)
	}
	return err
}

// ListDomains returns a page of the account's domains, newest first.
func (s *Store) ListDomains(ctx context.Context, accountID int64, p Page) (List[Domain], error) {
	l, err := listBySeq(ctx, s, p, fmt.Sprintf("domains/%d", accountID), "list domains", `SELECT `+domainColumns+` FROM domains`,
		conditions("account_id = ?", accountID), "seq", func(d Domain) int64 { return d.Seq })
	if err == nil {
		err = s.wrap(readDomainKeys(ctx, s.read, l.Rows), "list domains")
	}
	return l, err
}

// DeleteDomain suspends the inboxes that the account has on the domain, in short
// transactions, and removes the domain with its keys. When it fails in between,
// some inboxes are suspended and the domain is still there.
func (s *Store) DeleteDomain(ctx context.Context, accountID int64, id string) error {
	const (
		suspend = `UPDATE inboxes SET status = 'suspended', updated_at = $3 WHERE seq IN
			(SELECT seq FROM inboxes WHERE account_id = $1 AND seq > $4 AND domain = $2 AND status = 'active' ORDER BY seq LIMIT $5)
			RETURNING seq`
		remove = `DELETE FROM domains WHERE seq = $1` // its keys go with it
	)
	for after := int64(0); ; {
		some, err := transact(ctx, s, "delete domain", func(tx *sqlx.Tx) ([]int64, error) {
			d, err := getOne[Domain](ctx, tx, oneDomain+s.engine.LockRow(), accountID, id)
			if err != nil {
				return nil, err
			}
			some, err := getAll[int64](ctx, tx, suspend, accountID, d.Name, NewTime(s.now()), after, sweepBatch)
			if err != nil || len(some) == sweepBatch {
				return some, errIn("suspend inboxes", err)
			}
			return some, execAll(ctx, tx, []statement{{dropResponses, []any{d.ID}}, {remove, []any{d.Seq}}})
		})
		if err != nil || len(some) < sweepBatch {
			return err
		}
		after = slices.Max(some)
	}
}

// ReturnHost is the name below a domain that return paths are in when its SPF
// record and MX host are published there, and empty when they are not, or the
// domain is not verified for the account.
func (s *Store) ReturnHost(ctx context.Context, accountID int64, name string) (string, error) {
	const q = `SELECT records FROM domains WHERE domain = $1 AND account_id = $2 AND status = 'verified'`
	d, err := readOne[Domain](ctx, s, "domain", q, name, accountID)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	host := "bounces." + name
	for _, kind := range []string{"SPF", "RETURN_PATH"} {
		if d.Lookup(DomainRecord{Kind: kind, Name: host}).Status != RecordVerified {
			return "", err
		}
	}
	return host, err
}

// How long a domain may wait for its records, or be without one, and how often
// it is checked.
const (
	checkSoon  = time.Hour
	checkLater = 24 * time.Hour
)

// RecordStatus is the result of the last lookup of a record.
type RecordStatus string

// The states of a record.
const (
	RecordPending  RecordStatus = "pending" // no one has looked, or the DNS has not isCached yet
	RecordVerified RecordStatus = "verified"
	RecordMissing  RecordStatus = "missing"
)

// RecordLookup is the result of the last lookup of a record. Found has the values that DNS
// has instead.
type RecordLookup struct {
	Status RecordStatus `json:"status"`
	Found  []string     `json:"found"`
}

// DomainRecord is a DNS record of a domain. In the result of a lookup,
// RecordPending means that DNS did not respond.
type DomainRecord struct {
	Kind     string `json:"record"`
	Type     string `json:"type"`
	Name     string `json:"name"`
	Value    string `json:"value"`
	TTL      int    `json:"ttl"`
	Priority *int   `json:"priority"`
	RecordLookup
	Required bool   `json:"required"`
	Selector string `json:"-"` // of a DKIM key's
}

func (r DomainRecord) key() string { return r.Kind + " " + r.Name }

// DomainEventData is the data of an event about a domain.
type DomainEventData struct {
	DomainID   string         `json:"domain_id"`
	Domain     string         `json:"domain"`
	Status     DomainStatus   `json:"status"`
	CreatedAt  Time           `json:"created_at"`
	VerifiedAt *Time          `json:"verified_at"`
	Records    []DomainRecord `json:"dns_records"`
	Degraded   []DomainRecord `json:"degraded_records"`
}

// Lookup returns the result of the last lookup of r.
func (d Domain) Lookup(r DomainRecord) RecordLookup {
	if last, ok := d.Records.V[r.key()]; ok {
		return last
	}
	return RecordLookup{Status: RecordPending}
}

// ClaimDomains takes up to limit domains whose records are due to be looked up.
// Pushing the next look-up ahead is the claim.
func (s *Store) ClaimDomains(ctx context.Context, limit int) ([]Domain, error) {
	now := s.now()
	q := `WITH due AS MATERIALIZED (
			SELECT seq FROM domains WHERE next_check_at <= $1 ORDER BY next_check_at LIMIT $3` + s.engine.SkipLocked() + `)
		UPDATE domains SET next_check_at = $2 WHERE seq IN (SELECT seq FROM due) RETURNING ` + domainColumns
	return transact(ctx, s, "claim domains", func(tx *sqlx.Tx) ([]Domain, error) {
		rows, err := getAll[Domain](ctx, tx, q, NewTime(now), NewTime(now.Add(checkSoon)), limit)
		if err == nil {
			err = readDomainKeys(ctx, tx, rows)
		}
		return rows, err
	})
}

// RecordCheck keeps what a look-up of all records of d found, and what follows
// for d, its keys and, when a required record of a verified domain is gone, the
// event. asked says that someone asked for the look-up, which begins a failed
// domain's wait anew. It returns ErrNotFound if d has been deleted meanwhile.
func (s *Store) RecordCheck(ctx context.Context, d Domain, found []DomainRecord, asked bool) (Domain, error) {
	const (
		// All that ask for the name: they are checked one after the other, so
		// that one gets it.
		claims = `SELECT ` + domainColumns + ` FROM domains WHERE domain = $1 ORDER BY seq`
		save   = `UPDATE domains SET status = :status, records = :records, pending_since = :pending_since, degraded_at = :degraded_at,
			next_check_at = :next_check_at, verified_at = :verified_at WHERE seq = :seq`
	)
	d, err := transact(ctx, s, "record a look-up", func(tx *sqlx.Tx) (Domain, error) {
		all, err := getAll[Domain](ctx, tx, claims+s.engine.LockRow(), d.Name)
		if err != nil {
			return d, err
		}
		i := slices.IndexFunc(all, func(o Domain) bool { return o.Seq == d.Seq })
		if i < 0 {
			return d, fmt.Errorf("domain %s: %w", d.ID, ErrNotFound)
		}
		if err := readDomainKeys(ctx, tx, all[i:i+1]); err != nil {
			return d, err
		}
		taken := slices.ContainsFunc(all, func(o Domain) bool { return o.Seq != d.Seq && o.Status == DomainVerified })
		now, one := NewTime(s.now()), all[i]
		if one.Keys, err = s.noteKeys(ctx, tx, one.Keys, foundSelectors(found), now); err != nil {
			return d, err
		}
		lost := one.recordLookup(found, taken, asked, now)
		if _, err := tx.NamedExecContext(ctx, save, one); err != nil {
			return d, err
		}
		return one, s.domainEvent(ctx, tx, one, found, lost)
	})
	s.told(err)
	return d, err
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

// recordLookup updates d with the result of a lookup, and returns the required
// records that a verified domain has lost since the last lookup. Records without
// a DNS response are unchanged and do not change the state.
func (d *Domain) recordLookup(found []DomainRecord, taken, asked bool, now Time) (lost []DomainRecord) {
	before := d.Records.V
	d.Records.V = maps.Clone(before)
	if d.Records.V == nil {
		d.Records.V = map[string]RecordLookup{}
	}
	whole, gone := true, false
	for _, r := range found {
		if r.Status != RecordPending {
			d.Records.V[r.key()] = r.RecordLookup
		}
		if !r.Required {
			continue
		}
		whole = whole && r.Status == RecordVerified
		gone = gone || r.Status == RecordMissing
		if d.Status == DomainVerified && r.Status == RecordMissing && before[r.key()].Status == RecordVerified {
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
		if gone && !asked && !now.Before(d.DegradedAt.Add(DomainTTL)) {
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

func (d *Domain) waitedLong(now Time) bool { return !now.Before(d.PendingSince.Add(DomainTTL)) }

// forget removes records that the domain no longer needs, for example of a
// removed key.
func (d *Domain) forget(needed []DomainRecord) {
	keys := map[string]bool{}
	for _, r := range needed {
		keys[r.key()] = true
	}
	maps.DeleteFunc(d.Records.V, func(key string, _ RecordLookup) bool { return !keys[key] })
}

// nextCheck returns the time of the next lookup: daily for verified domains,
// hourly for pending ones, and on request for failed ones.
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
	if len(lost) == 0 {
		return nil
	}
	all := slices.Clone(found)
	for i := range all {
		all[i].RecordLookup = d.Lookup(all[i])
	}
	return s.insertEvents(ctx, tx, []newEvent{{notice: notice{account: d.AccountID, typ: EventDomainDegraded}, data: DomainEventData{
		DomainID: d.ID, Domain: d.Name, Status: d.Status, CreatedAt: d.CreatedAt, VerifiedAt: d.VerifiedAt, Records: all, Degraded: lost,
	}}})
}

// DomainKey is the public side of a signing key of an account's domain, or of the
// installation's own. It signs once it is published in DNS, until a newer key of
// the same algorithm does.
type DomainKey struct {
	Seq       int64  `db:"seq"`
	DomainSeq int64  `db:"domain_seq"` // 0 of the installation's
	Selector  string `db:"selector"`
	Algorithm string `db:"algorithm"`
	Public    string `db:"public"`
	FoundAt   *Time  `db:"found_at"`
	RetiredAt *Time  `db:"retired_at"`
}

const domainKeyColumns = `seq, coalesce(domain_seq, 0) AS domain_seq, selector, algorithm, public, found_at, retired_at`

// Signs reports whether the key signs, once the domain is verified.
func (k DomainKey) Signs() bool { return k.FoundAt != nil && k.RetiredAt == nil }

// Waits reports whether the key has yet to be found published.
func (k DomainKey) Waits() bool { return k.FoundAt == nil && k.RetiredAt == nil }

func readDomainKeys(ctx context.Context, db sqlx.ExtContext, rows []Domain) error {
	if len(rows) == 0 {
		return nil
	}
	var keys []DomainKey
	q := `SELECT ` + domainKeyColumns + ` FROM dkim_keys WHERE domain_seq IN (?) ORDER BY seq`
	if err := selectIn(ctx, db, &keys, q, rising(rows, func(d Domain) int64 { return d.Seq })); err != nil {
		return errIn("keys of domains", err)
	}
	of := map[int64][]DomainKey{}
	for _, k := range keys {
		of[k.DomainSeq] = append(of[k.DomainSeq], k)
	}
	for i, d := range rows {
		rows[i].Keys = of[d.Seq]
	}
	return nil
}

// addDomainKeys stores keys of a domain and reads them back.
func (s *Store) addDomainKeys(ctx context.Context, tx *sqlx.Tx, one []Domain, keys []DKIMKey) error {
	n, err := s.insertDKIMKeys(ctx, tx, &one[0].Seq, nil, keys)
	if err == nil && n < len(keys) {
		err = errors.New("a selector is in use")
	}
	if err != nil {
		return errIn("insert DKIM keys", err)
	}
	return readDomainKeys(ctx, tx, one)
}

// RotateKeys adds the keys that are to follow those of the domain: each signs once
// it is found published. ErrState while earlier ones wait for that.
func (s *Store) RotateKeys(ctx context.Context, accountID int64, id string, keys []DKIMKey) (Domain, error) {
	return transact(ctx, s, "rotate keys", func(tx *sqlx.Tx) (Domain, error) {
		d, err := getOne[Domain](ctx, tx, oneDomain+s.engine.LockRow(), accountID, id)
		one := []Domain{d}
		if err == nil {
			err = readDomainKeys(ctx, tx, one)
		}
		if err == nil {
			err = errWaits(d.Name, one[0].Keys)
		}
		if err == nil {
			err = s.addDomainKeys(ctx, tx, one, keys)
		}
		return one[0], err
	})
}

// errWaits is an ErrState while one of the keys waits to be published.
func errWaits(domain string, keys []DomainKey) error {
	if slices.ContainsFunc(keys, DomainKey.Waits) {
		return fmt.Errorf("keys of %s wait to be published: %w", domain, ErrState)
	}
	return nil
}

// noteKeys keeps what a look-up found of the keys of a domain, oldest first: those
// that are published now sign, the ones before them are retired, and what has been
// retired for KeyRetireTTL goes. found has the selectors. It returns the keys as they
// then are.
func (s *Store) noteKeys(ctx context.Context, tx *sqlx.Tx, keys []DomainKey, found map[string]bool, now Time) ([]DomainKey, error) {
	const (
		save   = `UPDATE dkim_keys SET found_at = $2, retired_at = $3 WHERE seq = $1`
		remove = `DELETE FROM dkim_keys WHERE seq = $1`
	)
	signs := map[string]bool{} // by algorithm
	for i := len(keys) - 1; i >= 0; i-- {
		k := &keys[i]
		if k.RetiredAt != nil && !now.Before(k.RetiredAt.Add(KeyRetireTTL)) {
			if _, err := tx.ExecContext(ctx, remove, k.Seq); err != nil {
				return nil, fmt.Errorf("remove key: %w", err)
			}
			keys = slices.Delete(keys, i, i+1)
			continue
		}
		before := *k
		if k.Waits() && found[k.Selector] {
			k.FoundAt = &now
		}
		if k.Signs() && signs[k.Algorithm] {
			k.RetiredAt = &now
		}
		signs[k.Algorithm] = signs[k.Algorithm] || k.Signs()
		if *k == before {
			continue
		}
		if _, err := tx.ExecContext(ctx, save, k.Seq, k.FoundAt, k.RetiredAt); err != nil {
			return nil, fmt.Errorf("note key: %w", err)
		}
	}
	return keys, nil
}

// DKIMKey is one private signing key of a domain. Private is PKCS #8 DER and is
// sealed in the database.
type DKIMKey struct {
	Domain    string `db:"domain"`
	Selector  string `db:"selector"`
	Algorithm string `db:"algorithm"` // "rsa" or "ed25519"
	Public    string `db:"public"`    // what stands in p= of its record (RFC 6376 section 3.6.1)
	Private   []byte `db:"sealed"`
}

func dkimLabel(domain, selector string) string { return "dkim/" + domain + "/" + selector }

// AddDKIMKeys stores the first keys of the installation's own mail domain, which sign
// at once, and leaves those alone that are there under the same domain and
// selector: nodes that start together keep the first ones.
func (s *Store) AddDKIMKeys(ctx context.Context, keys ...DKIMKey) error {
	now := NewTime(s.now())
	return s.inTx(ctx, "add DKIM keys", func(tx *sqlx.Tx) error {
		_, err := s.insertDKIMKeys(ctx, tx, nil, &now, keys)
		return err
	})
}

// insertDKIMKeys stores the keys whose selectors are free, sealed, and returns
// how many. domainSeq is of the account's domain that they are for, and foundAt
// is from when they sign, if they need not be found published.
func (s *Store) insertDKIMKeys(ctx context.Context, tx *sqlx.Tx, domainSeq *int64, foundAt *Time, keys []DKIMKey) (int, error) {
	const q = `
		INSERT INTO dkim_keys (domain_seq, domain, selector, algorithm, public, sealed, found_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (domain, selector) DO NOTHING`
	all := 0
	for _, k := range keys {
		sealed := s.seal.Seal(dkimLabel(k.Domain, k.Selector), k.Private)
		n, err := affected(tx.ExecContext(ctx, q, domainSeq, k.Domain, k.Selector, k.Algorithm, k.Public, sealed, foundAt, NewTime(s.now())))
		if all += n; err != nil {
			return all, err
		}
	}
	return all, nil
}

// TheInstall stands for an account where the installation's own mail domain is meant,
// which all accounts send from.
const TheInstall int64 = 0

// DKIMKeys returns the keys that an account's mail of domain is signed with,
// oldest first, or, for TheInstall, those of the mail domain. None is not an
// error. Keys sign from when they were found published until they are retired,
// and those of an account's domain only while it is verified for that account.
func (s *Store) DKIMKeys(ctx context.Context, accountID int64, domain string) ([]DKIMKey, error) {
	const q = `SELECT k.domain, k.selector, k.algorithm, k.public, k.sealed
		FROM dkim_keys k LEFT JOIN domains d ON d.seq = k.domain_seq
		WHERE k.domain = $1 AND k.found_at IS NOT NULL AND k.retired_at IS NULL
			AND (k.domain_seq IS NULL AND $2 = 0 OR d.account_id = $2 AND d.status = 'verified')
		ORDER BY k.seq`
	keys, err := readAll[DKIMKey](ctx, s, "DKIM keys", q, domain, accountID)
	for i := range keys {
		k := &keys[i]
		if k.Private, err = s.seal.Open(dkimLabel(k.Domain, k.Selector), k.Private); err != nil {
			return nil, fmt.Errorf("DKIM key %s of %s: %w", k.Selector, k.Domain, err)
		}
	}
	return keys, err
}

const installKeys = `SELECT ` + domainKeyColumns + ` FROM dkim_keys WHERE domain_seq IS NULL AND domain = $1 ORDER BY seq`

// InstallKeys returns the keys of the installation's own mail domain, oldest first:
// those that sign, those that wait to be published, and those that are shown for
// KeyRetireTTL more.
func (s *Store) InstallKeys(ctx context.Context, domain string) ([]DomainKey, error) {
	return readAll[DomainKey](ctx, s, "keys of the mail domain", installKeys, domain)
}

// RotateInstallKeys adds the keys that are to follow those of the mail domain: each
// signs once it is found published. ErrState while earlier ones wait for that.
func (s *Store) RotateInstallKeys(ctx context.Context, domain string, keys []DKIMKey) error {
	return s.changeInstallKeys(ctx, domain, func(tx *sqlx.Tx, have []DomainKey) error {
		if err := errWaits(domain, have); err != nil {
			return err
		}
		n, err := s.insertDKIMKeys(ctx, tx, nil, nil, keys)
		if err == nil && n < len(keys) {
			err = fmt.Errorf("a selector of %s is in use: %w", domain, ErrState)
		}
		return err
	})
}

// RecordInstallKeys keeps which selectors of the mail domain a look-up found, as
// RecordCheck does for an account's domain.
func (s *Store) RecordInstallKeys(ctx context.Context, domain string, found map[string]bool) error {
	return s.changeInstallKeys(ctx, domain, func(tx *sqlx.Tx, have []DomainKey) error {
		_, err := s.noteKeys(ctx, tx, have, found, NewTime(s.now()))
		return err
	})
}

func (s *Store) changeInstallKeys(ctx context.Context, domain string, change func(*sqlx.Tx, []DomainKey) error) error {
	return s.inTx(ctx, "keys of the mail domain", func(tx *sqlx.Tx) error {
		have, err := getAll[DomainKey](ctx, tx, installKeys+s.engine.LockRow(), domain)
		if err != nil {
			return err
		}
		return change(tx, have)
	})
}
