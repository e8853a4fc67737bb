package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/safety"
)

// ListDirection is the mail that a list decides about.
type ListDirection string

// The directions of lists.
const (
	ListInbound  ListDirection = "inbound"
	ListOutbound ListDirection = "outbound"
)

// maxListEntries is the most list entries of an account.
const maxListEntries = 2000

var (
	// ErrTooManyListEntries means that the account has maxListEntries.
	ErrTooManyListEntries = fmt.Errorf("an account has at most %d list entries", maxListEntries)
	// ErrLoosens means that a list entry would let mail pass that did not before.
	ErrLoosens = errors.New("the list entry lets more mail pass")
)

// ListEntry is an entry of the lists of an account or of one of its inboxes.
type ListEntry struct {
	Seq       int64           `db:"seq"`
	AccountID int64           `db:"account_id"`
	InboxSeq  int64           `db:"inbox_seq"` // 0: all inboxes of the account
	InboxID   *string         `db:"inbox_id"`
	ID        string          `db:"id"`
	Direction ListDirection   `db:"direction"`
	Action    mail.ListAction `db:"action"`
	Pattern   string          `db:"pattern"` // as mail.ParseListPattern returns it
	CreatedBy string          `db:"created_by"`
	CreatedAt Time            `db:"created_at"`
}

const (
	listColumns = `l.seq, l.account_id, l.inbox_seq, i.id AS inbox_id, l.id, l.direction, l.action, l.pattern, l.created_by, l.created_at`
	listTables  = ` FROM lists l LEFT JOIN inboxes i ON i.seq = l.inbox_seq`
)

// CreateListEntry adds an entry, or returns the same one that is there. Unless it may
// loosen, it returns ErrLoosens for an entry that lets mail pass that did not before.
func (s *Store) CreateListEntry(ctx context.Context, e ListEntry, mayLoosen bool, once *Once) (ListEntry, error) {
	const (
		written = `account_id, inbox_seq, id, direction, action, pattern, created_by, created_at`
		found   = `SELECT ` + listColumns + listTables + ` WHERE l.account_id = $1 AND l.inbox_seq = $2 AND l.direction = $3 AND l.action = $4 AND l.pattern = $5`
	)
	e.ID, e.CreatedAt = NewID("lst_", s.now()), NewTime(s.now())
	return transact(ctx, s, "create list entry", func(tx *sqlx.Tx) (ListEntry, error) {
		// Two entries at once could each be the first that allows.
		if err := s.lockAccount(ctx, tx, e.AccountID); err != nil {
			return e, err
		}
		all, err := readLists(ctx, tx, []int64{e.AccountID}, e.Direction)
		if err != nil {
			return e, err
		}
		same := slices.ContainsFunc(all, func(o ListEntry) bool {
			return o.InboxSeq == e.InboxSeq && o.Action == e.Action && o.Pattern == e.Pattern
		})
		switch {
		case same:
		case !mayLoosen && loosens(all, e):
			return e, ErrLoosens
		case len(all) >= maxListEntries:
			return e, ErrTooManyListEntries
		default:
			_, err = insertRow(ctx, tx, "lists", written, e)
		}
		if err != nil {
			return e, err
		}
		out, err := getOne[ListEntry](ctx, tx, found, e.AccountID, e.InboxSeq, e.Direction, e.Action, e.Pattern)
		if err == nil {
			err = s.cacheResponse(ctx, tx, once, out.ID, out)
		}
		return out, err
	})
}

// loosens reports whether an entry for one inbox, added to all entries of its
// direction, lets mail pass that did not before.
func loosens(all []ListEntry, e ListEntry) bool {
	e.ID = "new"
	before := listFor(all, e.InboxSeq).OfPattern(e.Pattern)
	after := listFor(append(slices.Clone(all), e), e.InboxSeq).OfPattern(e.Pattern)
	return before.Stricter(after)
}

// listFor returns the list of an inbox: its own entries and those of the account.
func listFor(all []ListEntry, inboxSeq int64) *mail.List {
	var entries []mail.ListEntry
	for _, e := range all {
		if e.InboxSeq == 0 || e.InboxSeq == inboxSeq {
			entries = append(entries, mail.ListEntry{ID: e.ID, Pattern: e.Pattern, Action: e.Action})
		}
	}
	return mail.NewList(entries)
}

func readLists(ctx context.Context, from sqlx.ExtContext, accounts []int64, d ListDirection) (all []ListEntry, err error) {
	const q = `SELECT seq, account_id, inbox_seq, id, action, pattern FROM lists WHERE account_id IN (?) AND direction = ?`
	if len(accounts) == 0 {
		return nil, nil
	}
	return all, errIn("lists", selectIn(ctx, from, &all, q, accounts, d))
}

// ListEntries returns a page of entries of the account, newest first. inboxIDs, when
// not nil, are the only inboxes whose entries the caller may see beside those of the
// account.
func (s *Store) ListEntries(ctx context.Context, accountID int64, inboxIDs []string, p Page) (List[ListEntry], error) {
	scope := fmt.Sprintf("lists/%d/%t/%q", accountID, inboxIDs != nil, inboxIDs)
	w := conditions("l.account_id = ? AND coalesce(i.status, '') <> 'deleted'", accountID)
	if inboxIDs != nil {
		w.in("coalesce(i.id, '')", append([]string{""}, inboxIDs...)) // an entry of the account has no inbox
	}
	return listBySeq(ctx, s, p, scope, "list entries", `SELECT `+listColumns+listTables, w, "l.seq", func(e ListEntry) int64 { return e.Seq })
}

// DeleteListEntry deletes an entry of the account. inboxIDs, when not nil, are the
// only inboxes whose entries the caller may delete.
func (s *Store) DeleteListEntry(ctx context.Context, accountID int64, inboxIDs []string, id string) error {
	const find = `SELECT ` + listColumns + listTables + ` WHERE l.account_id = $1 AND l.id = $2`
	e, err := readOne[ListEntry](ctx, s, "list entry "+id, find, accountID, id)
	if err == nil && inboxIDs != nil && !slices.Contains(inboxIDs, deref(e.InboxID)) {
		err = fmt.Errorf("list entry %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return err
	}
	return s.deleteRow(ctx, "list entry", "lists", accountID, id)
}

// ListError means that a list does not let a received message pass.
type ListError struct {
	Entry string // the id of the entry that decides; empty if none allows
	// InboxID is the inbox that does not receive the message.
	InboxID string
	// blocked are the events of a received message, one for each inbox that blocks it.
	blocked []newEvent
	// Temporary reports that the sender may be allowed: only a failed DNS lookup keeps it
	// from being authenticated.
	Temporary bool
}

// RecordBlocked writes an event for each inbox that refuses a received message.
func (s *Store) RecordBlocked(ctx context.Context, refused *ListError) error {
	err := s.inTx(ctx, "record a blocked message", func(tx *sqlx.Tx) error { return s.insertEvents(ctx, tx, refused.blocked) })
	if err == nil {
		s.changed([]topic{{kind: topicEvents}, {kind: topicWebhooks}}, 1)
	}
	return err
}

func (e *ListError) Error() string {
	if e.Entry == "" {
		return "the sender is not on the allow list"
	}
	return "the sender is blocked by list entry " + e.Entry
}

// quarantineMark stands before the from_email of a message in quarantine.
const quarantineMark = " "

func (h *preparedMessage) quarantined() bool { return h.msg.Status == MessageQuarantined }

// authenticated reports whether the sender address of a received message is
// authenticated: DMARC passed, an account of this installation sent it, or it is
// simulated.
func (h *preparedMessage) authenticated() bool {
	if a := h.msg.Content.Auth; a != nil && (a.V.DMARC == "pass" || a.V.Internal == "pass") {
		return true
	}
	return h.msg.TestMode
}

// safetyLevel is the level of the safety facts of a received message.
func (m *Message) safetyLevel() mail.SafetyLevel {
	if m.Content == nil || m.Content.Safety == nil || m.Content.Safety.V.Level == "" {
		return mail.SafetyNone
	}
	return m.Content.Safety.V.Level
}

// history is what an account has received from a sender before.
type history struct {
	account int64
	inbox   string  // its address
	address bool    // something from the address
	domain  *string // nil for nothing from the domain, or the domain that this one resembles
	usedAt  int64   // when the domain was last noted, in microseconds
}

// noteEvery is how long a domain that writes again is not noted again.
const noteEvery = 20 * time.Hour

// noteAgain follows the row of a correspondent: one that is known counts a day.
var noteAgain = fmt.Sprintf(` ON CONFLICT (account_id, address) DO UPDATE SET days = correspondents.days + 1, used_at = excluded.used_at
	WHERE correspondents.domain <> '' AND correspondents.used_at < excluded.used_at - %d`, noteEvery.Microseconds())

// fromDomain is the name of the domain of the sender in the table correspondents.
func (h *preparedMessage) fromDomain() string {
	return "@" + plaintext.Site(hostOf(h.msg.FromEmail))
}

// rate completes the safety facts of a received message by the history of its sender, and makes
// the rows that note the sender. It comes before the transaction: comparing domains takes long
// enough to hold up others. alike has the results for the other copies of the message. Two
// messages of a new sender at once are both first contacts.
func (s *Store) rate(ctx context.Context, h *preparedMessage, now Time, alike map[likeness]string) error {
	const q = `SELECT account_id, address,
		EXISTS (SELECT 1 FROM correspondents c WHERE c.account_id = i.account_id AND c.address = $2),
		(SELECT resembles FROM correspondents c WHERE c.account_id = i.account_id AND c.address = $3),
		coalesce((SELECT used_at FROM correspondents c WHERE c.account_id = i.account_id AND c.address = $3), 0) FROM inboxes i WHERE i.seq = $1`
	c, from := h.msg.Content, h.msg.FromEmail
	if h.facts == nil || h.msg.Direction != DirectionIn {
		return nil
	}
	domain := h.fromDomain()
	var known history
	err := s.read.Row(ctx, q, []any{h.msg.InboxSeq, hash64(from), hash64(domain)}, &known.account, &known.inbox, &known.address, &known.domain, &known.usedAt)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("inbox %d: %w", h.msg.InboxSeq, ErrNotFound)
	}
	if err != nil {
		return s.wrap(err, "history of the sender")
	}
	facts := *h.facts
	facts.Automated, facts.FirstContact = h.msg.Automated, !known.address
	facts.Unauthenticated = c.Auth == nil || c.Auth.V.DMARC != "pass" && c.Auth.V.Internal != "pass"
	met := func(address, domain, resembles string) {
		h.met = append(h.met, newRow{intoCorrespondents, []any{known.account, hash64(address), domain, resembles, now.UnixMicro()}, noteAgain})
	}
	if !known.address && from != "" {
		met(from, "", "")
	}
	switch {
	case known.domain != nil:
		if facts.LookAlike = *known.domain; facts.LookAlike == "" && h.authenticated() && now.UnixMicro()-known.usedAt > noteEvery.Microseconds() {
			met(domain, domain[1:], "")
		}
	case len(domain) > 1:
		to, compared := likeness{known.account, hostOf(known.inbox)}, false
		if facts.LookAlike, compared = alike[to]; !compared {
			if facts.LookAlike, err = s.lookAlike(ctx, to, domain[1:], hostOf(from)); err != nil {
				return err
			}
			alike[to] = facts.LookAlike
		}
		// A forger must not make a domain known.
		if facts.LookAlike != "" || h.authenticated() {
			met(domain, domain[1:], facts.LookAlike)
		}
	}
	if a := h.msg.Addresses.V.From; a != nil && facts.LookAlike == "" {
		facts.LookAlike = safety.NamedOther(*a)
	}
	facts.Rate()
	text, err := json.Marshal(facts)
	c.Safety, h.safety = &JSON[mail.Safety]{V: facts}, string(text)
	return errIn("write safety facts", err)
}

// likeness is what a new domain is compared with: the domains of an account, and the host of
// an inbox.
type likeness struct {
	account int64
	host    string
}

// hostOf returns what follows the last @ of an address.
func hostOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// maxCompared is how many domains of each kind a new one is compared with.
const maxCompared = 1000

// lookAlike returns the domain that a new domain resembles: one of the account, one that its
// latest messages went to, or one of those that write to it on most days. It returns an empty
// string if there is none. A stranger can change only the last of them, and only slowly.
func (s *Store) lookAlike(ctx context.Context, to likeness, domain, full string) (string, error) {
	const q = `SELECT domain FROM (SELECT domain FROM domains WHERE account_id = $1 ORDER BY seq DESC LIMIT $2) d
		UNION ALL SELECT domain FROM (SELECT DISTINCT r.domain FROM recipients r JOIN (SELECT seq FROM messages
			WHERE account_id = $1 AND direction = 'out' AND inbox_seq IS NOT NULL ORDER BY created_at DESC LIMIT $2) m ON m.seq = r.message_seq LIMIT $2) w
		UNION ALL SELECT domain FROM (SELECT domain FROM correspondents WHERE account_id = $1 AND domain <> '' AND resembles = ''
			ORDER BY days DESC, used_at DESC LIMIT $2) c`
	domains, err := readAll[string](ctx, s, "known domains", q, to.account, maxCompared)
	return safety.LookAlike(domain, full, append(domains, to.host)), err
}

// mayBeAuthentic reports whether the sender of a received message was not authenticated
// because a DNS lookup failed. A failed lookup for SPF or DKIM that cannot make DMARC pass
// does not count: a forger can cause it with a signature of their own.
func (h *preparedMessage) mayBeAuthentic() bool {
	a := h.msg.Content.Auth
	return a != nil && a.V.DMARC == "temperror" // RFC 8601
}

// CountQuarantined returns how many messages of the account are in quarantine, at most
// limit.
func (s *Store) CountQuarantined(ctx context.Context, accountID int64, limit int) (int, error) {
	const q = `SELECT count(*) FROM (SELECT m.seq FROM messages m JOIN inboxes i ON i.seq = m.inbox_seq
		WHERE m.account_id = $1 AND m.quarantined AND i.status <> 'deleted' LIMIT $2) x`
	return readOne[int](ctx, s, "count messages in quarantine", q, accountID, limit)
}

// ReleaseMessage takes a message out of quarantine: it is received now, with all that
// follows. It returns ErrState if it is not in quarantine.
func (s *Store) ReleaseMessage(ctx context.Context, m Message, fold func(*NewMessage)) (Message, error) {
	const q = `SELECT raw, blob_key, snippet, extracted, auth, safety, attachments, body, coalesce(checksum, 0) AS checksum FROM contents WHERE message_seq = $1`
	if m.Status != MessageQuarantined {
		return Message{}, fmt.Errorf("message %s is %s: %w", m.ID, m.Status, ErrState)
	}
	type row struct {
		Content
		Checksum int64 `db:"checksum"`
	}
	stored, err := readOne[row](ctx, s, "content of the message", q, m.Seq)
	if err != nil {
		return Message{}, err
	}
	c := stored.Content
	c.BlobSum = uint32(stored.Checksum >> 32) //nolint:gosec // the half of the raw message
	n := &NewMessage{Message: m}
	n.Status, n.Content, n.FromEmail = MessageReceived, &c, strings.TrimPrefix(m.FromEmail, quarantineMark)
	fold(n)
	h, err := prepareMessage(n, s.now())
	if err != nil {
		return Message{}, err
	}
	h.msg.ID = m.ID
	err = s.add(ctx, "release message", 0, func(tx *sqlx.Tx, w *written) error { return s.releaseMessage(ctx, tx, h, m.Seq, w) })
	if err != nil {
		return Message{}, err
	}
	return h.msg, nil
}

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

// suppress puts an address on the account's list, as Suppress does, and returns the entry.
// If it is new, or covers more mail than before, added is the event of that: the lock makes
// others that widen the same entry see what this transaction has made of it.
func (s *Store) suppress(ctx context.Context, tx *sqlx.Tx, sup Suppression) (out Suppression, added []newEvent, err error) {
	const q = `INSERT INTO suppressions (` + suppressionWritten + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)` + widen + ` RETURNING ` + suppressionColumns
	const before = `SELECT category FROM suppressions WHERE account_id = $1 AND email_fold = $2`
	now, fold := NewTime(s.now()), storable(sup.EmailFold)
	var had []SuppressionCategory
	if err := s.prepared.Select(ctx, tx, &had, before+s.engine.LockRow(), sup.AccountID, fold); err != nil {
		return out, nil, err
	}
	id := NewID("sup_", now.Time)
	err = s.prepared.Get(ctx, tx, &out, q, sup.AccountID, id, sup.Email, fold, sup.Reason, sup.Category, sup.Source, now)
	if err == nil && (out.ID == id || len(had) > 0 && had[0] != out.Category) {
		added = []newEvent{out.event(EventSuppressionCreated)}
	}
	return out, added, err
}

func (sup *Suppression) event(typ EventType) newEvent {
	return newEvent{notice: notice{account: sup.AccountID, typ: typ}, data: SuppressionEventData{
		ID: sup.ID, Email: sup.Email, Reason: sup.Reason, Category: sup.Category, Source: sup.Source, CreatedAt: sup.CreatedAt,
	}}
}

// Suppress puts an address on the account's list; sup carries AccountID, Email,
// EmailFold, Reason, Category and Source. It returns the entry as stored. An address
// that is there keeps its entry, which is widened, and takes the new reason,
// when it was about marketing alone and sup is about all mail. With once, the
// response is cached too.
func (s *Store) Suppress(ctx context.Context, sup Suppression, once *Once) (Suppression, error) {
	out, err := transact(ctx, s, "suppress", func(tx *sqlx.Tx) (Suppression, error) {
		out, events, err := s.suppress(ctx, tx, sup)
		if err == nil {
			err = s.insertEvents(ctx, tx, events)
		}
		if err == nil {
			err = s.cacheResponse(ctx, tx, once, out.ID, out)
		}
		return out, err
	})
	s.told(err)
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

// ListSuppressions returns a page of the account's list, newest first; with spellings of an
// address, only its entries.
func (s *Store) ListSuppressions(ctx context.Context, accountID int64, spellings []string, p Page) (List[Suppression], error) {
	w := conditions("account_id = ?", accountID)
	if spellings != nil {
		w.in("email_fold", spellings)
	}
	return listBySeq(ctx, s, p, fmt.Sprintf("suppressions/%d/%q", accountID, spellings), "list suppressions", `SELECT `+suppressionColumns+` FROM suppressions`,
		w, "seq", func(sup Suppression) int64 { return sup.Seq })
}

// DeleteSuppression takes an address, in all of its spellings, off the account's list,
// and returns an entry that it had. It returns ErrNotFound if it was not there.
func (s *Store) DeleteSuppression(ctx context.Context, accountID int64, spellings ...string) (Suppression, error) {
	w := conditions("account_id = ?", accountID)
	w.in("email_fold", spellings)
	sup, err := transact(ctx, s, "delete suppression", func(tx *sqlx.Tx) (sup Suppression, err error) {
		deleted, err := getAll[Suppression](ctx, tx, `DELETE FROM suppressions`+w.sql()+` RETURNING `+suppressionColumns, w.args...)
		switch {
		case err != nil:
			return sup, err
		case len(deleted) == 0:
			return sup, sql.ErrNoRows
		}
		for _, sup := range deleted {
			if err := s.dropCachedResponses(ctx, tx, sup.ID); err != nil {
				return sup, err
			}
		}
		gone := each(deleted, func(sup Suppression) newEvent { return sup.event(EventSuppressionDeleted) })
		return deleted[0], s.insertEvents(ctx, tx, gone)
	})
	s.told(err)
	return sup, err
}
