package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/mail"
)

// SendPolicy determines whom an inbox may write to.
type SendPolicy string

// The send policies.
const (
	PolicyOpen      SendPolicy = "open"
	PolicyReplyOnly SendPolicy = "reply_only"
	PolicyApproval  SendPolicy = "approval"
)

// InboxStatus is the stored state of an inbox; "expired" is read off ExpiresAt.
type InboxStatus string

// The states of an inbox.
const (
	InboxActive    InboxStatus = "active"
	InboxSuspended InboxStatus = "suspended"
	InboxDeleted   InboxStatus = "deleted"
)

// Inbox is a mailbox of a program. A deleted inbox keeps its row, so that its
// address is never assigned again.
type Inbox struct {
	Seq           int64         `db:"seq"`
	AccountID     int64         `db:"account_id"`
	ID            string        `db:"id"`
	Address       string        `db:"address"`
	Name          string        `db:"name"`
	Domain        string        `db:"domain"`
	DisplayName   *string       `db:"display_name"`
	SendPolicy    SendPolicy    `db:"send_policy"`
	Status        InboxStatus   `db:"status"`
	RetentionDays int           `db:"retention_days"`
	Metadata      JSON[Labels]  `db:"metadata"`
	ExpiresAt     *Time         `db:"expires_at"`
	LastMessageAt *Time         `db:"last_message_at"`
	CreatedAt     Time          `db:"created_at"`
	UpdatedAt     Time          `db:"updated_at"`
	Limits        *JSON[Limits] `db:"limits"` // nil: none
	// Aliases are local parts of further addresses on the domain. CatchAll means that
	// the inbox receives mail for all other addresses on the domain and below it.
	Aliases  JSON[[]string] `db:"aliases"`
	CatchAll bool           `db:"catch_all"`
	// Quarantine is the lowest level of safety whose messages are put into quarantine, or
	// empty.
	Quarantine mail.SafetyLevel `db:"quarantine"`

	// OnOwnDomain marks an inbox to create or update on a domain of the account, not
	// of the installation.
	OnOwnDomain bool `db:"-"`
}

// Bounds returns the limits of the inbox, or nil.
func (in Inbox) Bounds() *Limits { return bounds(in.Limits) }

// Expired reports whether the inbox has passed its expires_at.
func (in Inbox) Expired(now Time) bool { return in.ExpiresAt != nil && !in.ExpiresAt.After(now.Time) }

const inboxStored = `seq, account_id, id, address, name, domain, display_name, send_policy, status, retention_days, metadata,
	expires_at, created_at, updated_at, limits, aliases, catch_all, quarantine`

// The time of the last message is looked up, not kept: keeping it would cost a
// write of the inbox for each mail.
const inboxColumns = inboxStored + `,
	(SELECT max(m.created_at) FROM messages m WHERE m.inbox_seq = inboxes.seq) AS last_message_at`

// CreateInbox stores in and returns the stored row. It returns ErrAddressTaken if
// an address is or was in use, ErrDomainNotVerified if the account has not
// verified the domain, and a Refused if the plan allows no more inboxes.
func (s *Store) CreateInbox(ctx context.Context, in Inbox, once *Once) (Inbox, error) {
	const q = `
		INSERT INTO inboxes (account_id, id, address, name, domain, display_name, send_policy, status, retention_days, metadata,
			expires_at, created_at, updated_at, limits, aliases, catch_all, quarantine)
		SELECT $1, $2, $3, $4, $5, $6, $7, 'active', $8, $9, $10, $11, $11, $12, $13, $14, $16
		WHERE NOT EXISTS (SELECT 1 FROM inbox_addresses WHERE owner = $15 AND address = $3)
		  AND NOT EXISTS (SELECT 1 FROM freed_addresses WHERE $15 = 0 AND address = $3 AND account_id <> $1)
		ON CONFLICT (address) DO NOTHING
		RETURNING ` + inboxStored
	now := s.now()
	if in.Aliases.V == nil {
		in.Aliases.V = []string{}
	}
	further := len(in.Aliases.V) > 0 || in.CatchAll
	return transact(ctx, s, "create inbox", func(tx *sqlx.Tx) (Inbox, error) {
		err := s.lockAddresses(ctx, tx, further)
		if err == nil && in.OnOwnDomain {
			err = s.lockDomain(ctx, tx, in.AccountID, in.Domain)
		}
		if err != nil {
			return in, err
		}
		rows, err := getAll[Inbox](ctx, tx, q, in.AccountID, NewID("ibx_", now), in.Address, in.Name, in.Domain, in.DisplayName,
			in.SendPolicy, in.RetentionDays, in.Metadata, in.ExpiresAt, NewTime(now), in.Limits, in.Aliases, in.CatchAll, in.owner(), in.Quarantine)
		if err != nil {
			return in, err
		}
		if len(rows) == 0 {
			return in, s.taken(ctx, tx, "address "+in.Address, ErrAddressTaken, once)
		}
		out := rows[0]
		if further {
			out.OnOwnDomain = in.OnOwnDomain
			err = s.saveAddresses(ctx, tx, out)
		}
		if err == nil {
			err = s.countInbox(ctx, tx, in.AccountID)
		}
		if err == nil {
			err = s.cacheResponse(ctx, tx, once, out.ID, out)
		}
		return out, err
	})
}

// countInbox counts a new inbox of the account, if its plan has room for it.
func (s *Store) countInbox(ctx context.Context, tx *sqlx.Tx, accountID int64) error {
	const q = `UPDATE accounts SET inboxes = inboxes + 1 WHERE seq = $1 RETURNING ` + accountColumns
	a, err := getOne[Account](ctx, tx, q, accountID)
	if p := s.Plan(a); err == nil && p.Inboxes > 0 && a.Inboxes > p.Inboxes {
		return refuse(RuleInboxes, "", "the plan %s has %d inboxes", p.Name, p.Inboxes)
	}
	return errIn("count inbox", err)
}

// taken is the error for a name that cannot be had: exists, unless it was
// given to the same call, made twice at the same time.
func (s *Store) taken(ctx context.Context, tx *sqlx.Tx, name string, exists error, once *Once) error {
	isCached, err := s.isCached(ctx, tx, once)
	if err != nil {
		return err
	}
	if isCached {
		exists = ErrIdempotencyRaced
	}
	return fmt.Errorf("%s: %w", name, exists)
}

// Inbox returns the account's inbox, unless it is deleted.
func (s *Store) Inbox(ctx context.Context, accountID int64, id string) (Inbox, error) {
	return readOne[Inbox](ctx, s, "inbox", oneInbox, accountID, id)
}

const oneInbox = `SELECT ` + inboxColumns + ` FROM inboxes WHERE account_id = $1 AND id = $2 AND status <> 'deleted'`

// InboxSettings is Inbox without LastMessageAt.
func (s *Store) InboxSettings(ctx context.Context, accountID int64, id string) (Inbox, error) {
	const q = `SELECT ` + inboxStored + ` FROM inboxes WHERE account_id = $1 AND id = $2 AND status <> 'deleted'`
	return readOne[Inbox](ctx, s, "inbox", q, accountID, id)
}

// InboxAt returns the inbox that has or had an address, of whatever account and
// in whatever state, or the one that has it as an alias on a domain of owner. A
// catch-all inbox does not count. LastMessageAt is left out.
func (s *Store) InboxAt(ctx context.Context, owner int64, address string) (Inbox, error) {
	const q = `SELECT ` + inboxStored + ` FROM inboxes WHERE seq = coalesce((SELECT seq FROM inboxes WHERE address = $1),
		(SELECT inbox_seq FROM inbox_addresses WHERE owner = $2 AND address = $1))`
	return readOne[Inbox](ctx, s, "inbox at an address", q, address, owner)
}

// NewestIn returns the place of the newest message of the inbox, which is zero if
// it has none. It returns ErrNotFound if the inbox is deleted. Messages that are
// stored later come after this place.
func (s *Store) NewestIn(ctx context.Context, inboxSeq int64) (Place, error) {
	const q = `
		SELECT coalesce(m.created_at, 0) AS created_at, coalesce(m.seq, 0) AS seq FROM inboxes i
		LEFT JOIN messages m ON m.seq = (SELECT n.seq FROM messages n WHERE n.inbox_seq = i.seq ORDER BY n.created_at DESC, n.seq DESC LIMIT 1)
		WHERE i.seq = $1 AND i.status <> 'deleted'`
	return readOne[Place](ctx, s, "inbox", q, inboxSeq)
}

// InboxFilter selects inboxes. Empty fields select all.
type InboxFilter struct {
	// IDs, when not nil, are the only inboxes that the caller may see.
	IDs []string
	// Address is that of the inbox, or one of its aliases. Case does not matter.
	Address string
	// IDPrefix is the beginning of the id.
	IDPrefix string
}

// ListInboxes returns a page of the account's inboxes, newest first.
func (s *Store) ListInboxes(ctx context.Context, accountID int64, f InboxFilter, p Page) (List[Inbox], error) {
	scope := fmt.Sprintf("inboxes/%d/%t/%q", accountID, f.IDs != nil, f)
	w := conditions("account_id = ? AND status <> 'deleted'", accountID)
	if f.IDs != nil {
		w.in("id", f.IDs)
	}
	if f.Address != "" {
		address := storable(strings.ToLower(f.Address))
		w.add(`seq IN (SELECT seq FROM inboxes WHERE address = ?
			UNION SELECT inbox_seq FROM inbox_addresses WHERE owner IN (0, ?) AND address = ?)`, address, accountID, address)
	}
	if f.IDPrefix != "" {
		w.add(`id LIKE ? ESCAPE '\'`, escapeLike(storable(f.IDPrefix))+"%")
	}
	return listBySeq(ctx, s, p, scope, "list inboxes", `SELECT `+inboxColumns+` FROM inboxes`, w, "seq", func(in Inbox) int64 { return in.Seq })
}

// InboxesLike returns at most limit inboxes of the account, newest first, whose
// address contains text, ignoring case.
func (s *Store) InboxesLike(ctx context.Context, accountID int64, text string, limit int) ([]Inbox, error) {
	const q = `SELECT ` + inboxColumns + ` FROM inboxes
		WHERE account_id = $1 AND status <> 'deleted' AND address LIKE $2 ESCAPE '\' ORDER BY seq DESC LIMIT $3`
	return readAll[Inbox](ctx, s, "inboxes", q, accountID, "%"+escapeLike(storable(strings.ToLower(text)))+"%", limit)
}

// UpdateInbox lets edit change the inbox and saves display name, send policy, retention,
// metadata, expiry, limits and further addresses. An error of edit changes nothing.
func (s *Store) UpdateInbox(ctx context.Context, accountID int64, id string, edit func(*Inbox) error) (Inbox, error) {
	const save = `
		UPDATE inboxes SET display_name = :display_name, send_policy = :send_policy, retention_days = :retention_days,
			metadata = :metadata, expires_at = :expires_at, updated_at = :updated_at, limits = :limits, aliases = :aliases,
			catch_all = :catch_all, quarantine = :quarantine WHERE seq = :seq`
	return transact(ctx, s, "inbox "+id, func(tx *sqlx.Tx) (Inbox, error) {
		var old Inbox
		in, err := editRow(ctx, s, tx, oneInbox, []any{accountID, id}, func(in *Inbox) error {
			old = *in
			if err := edit(in); err != nil {
				return err
			}
			in.UpdatedAt = NewTime(s.now())
			if in.Bounds().limitsNew() && !old.Bounds().limitsNew() {
				return s.learnRecipients(ctx, tx, *in)
			}
			return nil
		}, save)
		if err != nil || in.CatchAll == old.CatchAll && slices.Equal(in.Aliases.V, old.Aliases.V) {
			return in, err
		}
		return in, s.saveAddresses(ctx, tx, in)
	})
}

func (l *Limits) limitsNew() bool { return l != nil && l.NewRecipientsPerDay != nil }

// owner is the account whose domain the inbox is on, or 0 for the domain that all
// accounts share.
func (in Inbox) owner() int64 {
	if in.OnOwnDomain {
		return in.AccountID
	}
	return 0
}

// CatchAllOf is the address that stands for all other addresses on a domain.
func CatchAllOf(domain string) string { return "*@" + domain }

// lockAddresses lets one transaction at a time claim further addresses, and none create
// an inbox meanwhile. To avoid deadlocks, it comes before the locks of domains, accounts
// and addresses. A transaction may lock an inbox before it, but none after it.
func (s *Store) lockAddresses(ctx context.Context, tx *sqlx.Tx, further bool) error {
	const (
		create = `SELECT pg_advisory_xact_lock_shared(cast(cast('inbox_addresses' AS regclass) AS bigint))`
		claim  = `SELECT pg_advisory_xact_lock(cast(cast('inbox_addresses' AS regclass) AS bigint))`
	)
	if s.engine.Alone() {
		return nil
	}
	q := create
	if further {
		q = claim
	}
	_, err := tx.ExecContext(ctx, q)
	return errIn("lock addresses", err)
}

// freeAddresses takes its further addresses from an inbox. Those on the domain that all
// accounts share stay with the account: people may still write to them.
func freeAddresses(ctx context.Context, tx *sqlx.Tx, in Inbox) error {
	const (
		keep = `
			INSERT INTO freed_addresses (address, account_id)
			SELECT address, $2 FROM inbox_addresses WHERE inbox_seq = $1 AND owner = 0
			ON CONFLICT DO NOTHING`
		remove = `DELETE FROM inbox_addresses WHERE inbox_seq = $1`
	)
	return execAll(ctx, tx, []statement{{keep, []any{in.Seq, in.AccountID}}, {remove, []any{in.Seq}}})
}

// FreedBy returns the account that has, or had, an address of the shared domain as an
// alias that it may take again, and 0 without one.
func (s *Store) FreedBy(ctx context.Context, address string) (accountID int64, err error) {
	const q = `SELECT coalesce((SELECT account_id FROM freed_addresses WHERE address = $1), 0)`
	return readOne[int64](ctx, s, "freed address", q, address)
}

// saveAddresses replaces the further addresses of an inbox. Its error is a
// TakenError if another inbox has one of them, or had one as its address, or if another
// account has freed one of the shared domain.
func (s *Store) saveAddresses(ctx context.Context, tx *sqlx.Tx, in Inbox) error {
	const (
		exists = `
			SELECT (SELECT count(*) FROM inboxes WHERE address = $1) +
				(SELECT count(*) FROM freed_addresses WHERE $2 = 0 AND address = $1 AND account_id <> $3)`
		add    = `INSERT INTO inbox_addresses (owner, address, inbox_seq) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
		holder = `SELECT i.id, i.address FROM inbox_addresses a JOIN inboxes i ON i.seq = a.inbox_seq WHERE a.owner = $1 AND a.address = $2`
	)
	err := s.lockAddresses(ctx, tx, true)
	if err == nil && in.OnOwnDomain {
		err = s.lockDomain(ctx, tx, in.AccountID, in.Domain)
	}
	if err == nil {
		err = freeAddresses(ctx, tx, in)
	}
	if err != nil {
		return err
	}
	for i, alias := range in.Aliases.V {
		address := alias + "@" + in.Domain
		added, err := affected(tx.ExecContext(ctx, add, in.owner(), address, in.Seq))
		if err != nil {
			return err
		}
		// Counted after the insert, which waits while an inbox frees the address.
		others, err := getOne[int](ctx, tx, exists, address, in.owner(), in.AccountID)
		if err != nil {
			return err
		}
		if others > 0 || added == 0 {
			return &TakenError{Param: fmt.Sprintf("aliases[%d]", i), Text: address + " is or was in use"}
		}
	}
	if !in.CatchAll {
		return nil
	}
	all := CatchAllOf(in.Domain)
	added, err := affected(tx.ExecContext(ctx, add, in.owner(), all, in.Seq))
	if err != nil || added > 0 {
		return err
	}
	other, err := getOne[Inbox](ctx, tx, holder, in.owner(), all)
	if err != nil {
		return err
	}
	return &TakenError{Param: "catch_all", Text: fmt.Sprintf("inbox %s (%s) is the catch-all inbox of %s", other.ID, other.Address, in.Domain)}
}

// DeleteInbox makes the inbox refuse mail and hides all its content. It wakes
// waiting clients on all nodes. Queued messages are still delivered.
func (s *Store) DeleteInbox(ctx context.Context, accountID int64, id string) (Inbox, error) {
	const (
		q     = `UPDATE inboxes SET status = 'deleted', updated_at = $2 WHERE seq = $1`
		count = `UPDATE accounts SET inboxes = inboxes - 1 WHERE seq = $1`
		event = `INSERT INTO events (account_id, inbox_seq, id, type, test_mode, data, created_at) VALUES ($1, $2, $3, $4, false, '{}', $5)`
	)
	in, err := transact(ctx, s, "delete inbox", func(tx *sqlx.Tx) (Inbox, error) {
		in, err := s.lockInbox(ctx, tx, accountID, id)
		if err == nil {
			err = freeAddresses(ctx, tx, in)
		}
		if err != nil {
			return in, err
		}
		in.Status, in.UpdatedAt = InboxDeleted, NewTime(s.now())
		// The event comes last, since it holds up the log of events until the commit.
		return in, execAll(ctx, tx, []statement{
			{q, []any{in.Seq, in.UpdatedAt}}, {count, []any{in.AccountID}}, {dropResponses, []any{in.ID}},
			{event, []any{in.AccountID, in.Seq, NewLongID("evt_", in.UpdatedAt.Time), EventInboxDeleted, in.UpdatedAt}},
		})
	})
	if err != nil {
		return in, err
	}
	s.changed([]topic{{topicInbox, in.Seq}}, 1)
	// The inbox is deleted, so an error does not fail the call: retention deletes
	// what is left together with the messages.
	if err := s.dropInboxResponses(context.WithoutCancel(ctx), in); err != nil {
		s.log.WarnContext(ctx, "cached responses of a deleted inbox are left to retention", "inbox_id", in.ID, "error", err)
	}
	return in, nil
}

// lockInbox reads the inbox and keeps others from changing it, or putting mail
// into it, until the end of the transaction.
func (s *Store) lockInbox(ctx context.Context, tx *sqlx.Tx, accountID int64, id string) (Inbox, error) {
	in, err := getOne[Inbox](ctx, tx, oneInbox+s.engine.LockRow(), accountID, id)
	return in, s.wrap(err, "inbox "+id)
}

// Mailbox holds the fields of an inbox that receiving needs.
type Mailbox struct {
	Seq       int64       `db:"seq"`
	AccountID int64       `db:"account_id"`
	ID        string      `db:"id"`
	Status    InboxStatus `db:"status"`
	ExpiresAt *Time       `db:"expires_at"`
}

// Mailbox is the inbox as those who bring mail see it.
func (in Inbox) Mailbox() Mailbox {
	return Mailbox{in.Seq, in.AccountID, in.ID, in.Status, in.ExpiresAt}
}

// Takes reports whether the inbox accepts mail.
func (m Mailbox) Takes(now Time) bool { return m.Status == InboxActive && !m.Expired(now) }

// Expired reports whether the inbox has passed its expires_at.
func (m Mailbox) Expired(now Time) bool { return m.ExpiresAt != nil && !m.ExpiresAt.After(now.Time) }

// One query: coalesce stops at the first inbox, and "" is not an address.
const mailboxByAddress = `
	SELECT seq, account_id, id, status, expires_at FROM inboxes WHERE seq = coalesce(
		(SELECT seq FROM inboxes WHERE address = $1),
		(SELECT inbox_seq FROM inbox_addresses WHERE owner = $2 AND address = $1),
		(SELECT inbox_seq FROM inbox_addresses WHERE owner = $2 AND address = $3)) AND status <> 'deleted'`

// MailboxByAddress returns the inbox that receives mail for address (lower case,
// without tag): the inbox, of any account, with that address; else the one with that
// alias; else the catch-all inbox catchAll, which may be empty. Aliases and catch-all
// inboxes are those on domains of owner, an account, or 0 for the domain of the
// installation. It returns ErrNotFound without an inbox, or if the inbox with that
// address is deleted.
func (s *Store) MailboxByAddress(ctx context.Context, owner int64, address, catchAll string) (Mailbox, error) {
	var m Mailbox
	err := s.read.Row(ctx, mailboxByAddress, []any{address, owner, catchAll}, &m.Seq, &m.AccountID, &m.ID, &m.Status, &m.ExpiresAt)
	return m, s.wrap(err, "inbox")
}

// SuspendInbox makes an inbox, of any account, refuse mail and sending until
// ResumeInbox; queued messages are still delivered. The argument is an id or an
// address. It returns ErrState if the inbox is already suspended.
func (s *Store) SuspendInbox(ctx context.Context, name string) (Inbox, error) {
	return s.turnInbox(ctx, "suspend inbox", name, InboxActive, InboxSuspended)
}

// ResumeInbox ends what SuspendInbox began. It returns ErrState if the inbox is
// not suspended.
func (s *Store) ResumeInbox(ctx context.Context, name string) (Inbox, error) {
	return s.turnInbox(ctx, "resume inbox", name, InboxSuspended, InboxActive)
}

func (s *Store) turnInbox(ctx context.Context, what, name string, from, to InboxStatus) (Inbox, error) {
	const (
		q    = `SELECT ` + inboxColumns + ` FROM inboxes WHERE (id = $1 OR address = $1) AND status <> 'deleted'`
		turn = `UPDATE inboxes SET status = :status, updated_at = :updated_at WHERE seq = :seq`
	)
	return transact(ctx, s, what+" "+name, func(tx *sqlx.Tx) (Inbox, error) {
		return editRow(ctx, s, tx, q, []any{name}, func(in *Inbox) error {
			if in.Status != from {
				return fmt.Errorf("inbox %s is %s: %w", name, in.Status, ErrState)
			}
			in.Status, in.UpdatedAt = to, NewTime(s.now())
			return nil
		}, turn)
	})
}

// HaveWritten returns those of the addresses, folded as FromEmail is, that have
// themselves written to an inbox: a received mail names them in its header
// From, and its record is still kept. Simulated mail counts only when simulated
// is set.
func (s *Store) HaveWritten(ctx context.Context, inboxSeq int64, addresses []string, simulated bool) ([]string, error) {
	q, args := haveWritten(inboxSeq, addresses, simulated)
	return readAll[string](ctx, s, "who has written to the inbox", q, args...)
}

// haveWritten is the query of HaveWritten. The index of the messages of an inbox
// has all that it asks for: it goes through the inbox there, and reads no
// message. An index of senders alone would cost every mail more than this costs
// the few who ask.
func haveWritten(inboxSeq int64, addresses []string, simulated bool) (query string, args []any) {
	addresses = slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return storable(a) != a })
	w := conditions("inbox_seq = ? AND direction = 'in'", inboxSeq)
	w.in("from_email", addresses)
	if !simulated {
		w.add("NOT test_mode")
	}
	return `SELECT DISTINCT from_email FROM messages` + w.sql(), w.args
}

// WrittenTo returns those of the addresses, folded as FromEmail is, that the inbox
// has sent one of its newest messages to.
func (s *Store) WrittenTo(ctx context.Context, inboxSeq int64, addresses []string) ([]string, error) {
	var w where
	newest := `SELECT seq FROM messages WHERE inbox_seq = ` + w.arg(inboxSeq) + ` AND direction = 'out' ORDER BY created_at DESC LIMIT ` + w.arg(maxWrittenTo)
	w.in("lower(email)", slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return storable(a) != a }))
	q := `SELECT DISTINCT lower(email) FROM recipients` + w.sql() + ` AND message_seq IN (` + newest + `)`
	return readAll[string](ctx, s, "who the inbox has written to", q, w.args...)
}
