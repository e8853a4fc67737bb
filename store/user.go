package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// ErrNameTaken means that another user has the name.
var ErrNameTaken = errors.New("name is another user's")

// Role is what a user may do.
type Role string

// The roles. Each may also do what the later ones may.
const (
	RoleAdmin    Role = "admin"    // everything
	RoleApprover Role = "approver" // decide about drafts
	RoleViewer   Role = "viewer"   // read
)

// Roles are the roles, from the one that may do most.
var Roles = []Role{RoleAdmin, RoleApprover, RoleViewer}

// Includes reports whether a user with the role r may do what one with the other role
// may.
func (r Role) Includes(other Role) bool {
	at := slices.Index(Roles, r)
	return at >= 0 && at <= slices.Index(Roles, other)
}

// User is a user of the dashboard. The name is for sign-in; it is unique in the
// installation, ignoring case.
type User struct {
	Seq       int64   `db:"seq"`
	AccountID int64   `db:"account_id"`
	ID        string  `db:"id"`
	Name      string  `db:"name"`
	Role      Role    `db:"role"`
	Password  *string `db:"password"` // its hash; nil: a one-time link has to set it first
	RemovedAt *Time   `db:"removed_at"`
	CreatedAt Time    `db:"created_at"`
}

const userColumns = `seq, account_id, id, name, role, password, removed_at, created_at`

// UserLink is a link that sets a password, once.
type UserLink struct {
	Hash      []byte // SHA-256 of its token
	ExpiresAt time.Time
}

// foldUser returns the form of a user name that is stored and looked up.
func foldUser(name string) string { return strings.ToLower(name) }

// CreateUser creates a user of the account, who sets a password with the link. It
// returns ErrNameTaken if another user has the name.
func (s *Store) CreateUser(ctx context.Context, accountID int64, name string, role Role, link UserLink) (User, error) {
	return transact(ctx, s, "create user", func(tx *sqlx.Tx) (User, error) {
		return s.insertUser(ctx, tx, accountID, name, role, link)
	})
}

func (s *Store) insertUser(ctx context.Context, tx *sqlx.Tx, accountID int64, name string, role Role, link UserLink) (User, error) {
	const q = `
		INSERT INTO users (account_id, id, name, role, created_at)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (name) WHERE removed_at IS NULL DO NOTHING
		RETURNING ` + userColumns
	now := s.now()
	u, err := getOne[User](ctx, tx, q, accountID, NewID("usr_", now), foldUser(name), role, NewTime(now))
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("user %s: %w", name, ErrNameTaken)
	}
	if err != nil {
		return u, err
	}
	return u, putUserLink(ctx, tx, u.Seq, link)
}

func putUserLink(ctx context.Context, tx *sqlx.Tx, user int64, link UserLink) error {
	const q = `
		INSERT INTO user_links (user_seq, hash, expires_at) VALUES ($1, $2, $3)
		ON CONFLICT (user_seq) DO UPDATE SET hash = excluded.hash, expires_at = excluded.expires_at`
	_, err := tx.ExecContext(ctx, q, user, link.Hash, NewTime(link.ExpiresAt))
	return err
}

// UserByName returns the user with that name. It returns ErrNotFound if there is
// none, or the user was removed.
func (s *Store) UserByName(ctx context.Context, name string) (User, error) {
	const q = `SELECT ` + userColumns + ` FROM users WHERE name = $1 AND removed_at IS NULL`
	return readOne[User](ctx, s, "user", q, foldUser(name))
}

// User returns a user of the account by id. It returns ErrNotFound if the user was
// removed.
func (s *Store) User(ctx context.Context, accountID int64, id string) (User, error) {
	const q = `SELECT ` + userColumns + ` FROM users WHERE account_id = $1 AND id = $2 AND removed_at IS NULL`
	return readOne[User](ctx, s, "user "+id, q, accountID, id)
}

// ListUsers returns a page of the account's users who are not removed, newest
// first.
func (s *Store) ListUsers(ctx context.Context, accountID int64, p Page) (List[User], error) {
	return listBySeq(ctx, s, p, fmt.Sprintf("users/%d", accountID), "list users", `SELECT `+userColumns+` FROM users`,
		conditions("account_id = ? AND removed_at IS NULL", accountID), "seq", func(u User) int64 { return u.Seq })
}

// ResetUser removes the user's password, ends the user's sessions and earlier
// links, and stores a link to set a new password. It returns ErrNotFound if the
// user does not exist.
func (s *Store) ResetUser(ctx context.Context, name string, link UserLink) (User, error) {
	const q = `UPDATE users SET password = NULL WHERE name = $1 AND removed_at IS NULL RETURNING ` + userColumns
	return s.changeUser(ctx, "reset user", q, []any{foldUser(name)}, func(tx *sqlx.Tx, u User) error {
		return putUserLink(ctx, tx, u.Seq, link)
	})
}

// RemoveUser ends what the user may do: no one signs in as them any more. The
// name is free again. It returns ErrNotFound if the user does not exist.
func (s *Store) RemoveUser(ctx context.Context, name string) (User, error) {
	const q = `UPDATE users SET removed_at = $2, password = NULL WHERE name = $1 AND removed_at IS NULL RETURNING ` + userColumns
	return s.changeUser(ctx, "remove user", q, []any{foldUser(name), NewTime(s.now())}, func(tx *sqlx.Tx, u User) error {
		return endLinks(ctx, tx, u.Seq)
	})
}

func endLinks(ctx context.Context, tx *sqlx.Tx, user int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM user_links WHERE user_seq = $1`, user)
	return err
}

// SetRole changes the role of a user of the account. It returns ErrNotFound if the user
// was removed.
func (s *Store) SetRole(ctx context.Context, accountID int64, id string, role Role) error {
	const q = `UPDATE users SET role = $3 WHERE account_id = $1 AND id = $2 AND removed_at IS NULL`
	return s.execOne(ctx, "change role", "user "+id, q, accountID, id, role)
}

// ChangePassword replaces the password that is kept with u, and ends the sessions and
// links of the user but the session whose token has this hash. It returns ErrNotFound
// if the user was removed, or has another password by now.
func (s *Store) ChangePassword(ctx context.Context, u User, password string, session []byte) error {
	const q = `UPDATE users SET password = $3 WHERE seq = $1 AND password = $2 AND removed_at IS NULL`
	return s.inTx(ctx, "change password", func(tx *sqlx.Tx) error {
		err := oneRow("user", ErrNotFound)(tx.ExecContext(ctx, q, u.Seq, u.Password, password))
		if err == nil {
			err = endLinks(ctx, tx, u.Seq)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, endOthers, u.Seq, session)
		}
		return err
	})
}

// Session is a session of a user.
type Session struct {
	Hash       []byte `db:"hash"` // of its token
	CreatedAt  Time   `db:"created_at"`
	LastUsedAt Time   `db:"last_used_at"`
	Address    string `db:"address"` // that it began from, or empty
	Browser    string `db:"browser"` // such as "Firefox on Linux", or empty
}

// DescribeSession records which address and browser the session began with.
func (s *Store) DescribeSession(ctx context.Context, hash []byte, address, browser string) error {
	_, err := s.exec(ctx, "describe session", `UPDATE user_sessions SET address = $2, browser = $3 WHERE hash = $1`, hash, address, browser)
	return err
}

// Sessions returns the sessions of a user, the last used ones first, at most limit.
func (s *Store) Sessions(ctx context.Context, userSeq int64, limit int) ([]Session, error) {
	const q = `SELECT hash, created_at, last_used_at, address, browser FROM user_sessions
		WHERE user_seq = $1 AND expires_at > $2 AND last_used_at > $3 ORDER BY last_used_at DESC, created_at DESC LIMIT $4`
	now := s.now()
	return readAll[Session](ctx, s, "sessions", q, userSeq, NewTime(now), NewTime(now.Add(-SessionIdleTTL)), limit)
}

// EndOtherSessions ends the sessions of a user but the one whose token has this hash,
// and returns how many.
func (s *Store) EndOtherSessions(ctx context.Context, userSeq int64, keep []byte) (int, error) {
	return s.exec(ctx, "end sessions", endOthers, userSeq, keep)
}

const endOthers = `DELETE FROM user_sessions WHERE user_seq = $1 AND hash <> $2`

// changeUser runs q, which returns the one user that it changed, ends the user's
// sessions, and does then what follows.
func (s *Store) changeUser(ctx context.Context, what, q string, args []any, then func(*sqlx.Tx, User) error) (User, error) {
	return transact(ctx, s, what, func(tx *sqlx.Tx) (User, error) {
		u, err := getOne[User](ctx, tx, q, args...)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM user_sessions WHERE user_seq = $1`, u.Seq)
		}
		if err == nil {
			err = then(tx, u)
		}
		return u, err
	})
}

// StartSession makes a session of u, who gave the password that is kept with u, or who
// needs none; the session's token has this hash: whoever has the token is the user until
// it ends. It returns ErrNotFound if the user was removed, or has another password by
// now.
func (s *Store) StartSession(ctx context.Context, u User, hash []byte) error {
	return s.inTx(ctx, "start session", func(tx *sqlx.Tx) error { return s.insertSession(ctx, tx, u, hash) })
}

// insertSession also forgets sessions that have ended. The password is checked
// again: it may have been taken away, and another set, while it was being checked.
func (s *Store) insertSession(ctx context.Context, tx *sqlx.Tx, u User, hash []byte) error {
	const (
		old = `DELETE FROM user_sessions WHERE expires_at <= $1`
		// The no-op update locks the user's row against a reset that runs now.
		lock = `UPDATE users SET name = name WHERE seq = $1 AND removed_at IS NULL AND password IS NOT DISTINCT FROM $2`
		q    = `INSERT INTO user_sessions (hash, user_seq, expires_at, last_used_at, created_at) VALUES ($1, $2, $3, $4, $4)`
	)
	now := s.now()
	if _, err := tx.ExecContext(ctx, old, NewTime(now)); err != nil {
		return err
	}
	if err := oneRow("user", ErrNotFound)(tx.ExecContext(ctx, lock, u.Seq, u.Password)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, q, hash, u.Seq, NewTime(now.Add(SessionTTL)), NewTime(now))
	return err
}

// SessionUser returns the user whose session's token has this hash. It returns
// ErrNotFound if there is none, or it has ended.
func (s *Store) SessionUser(ctx context.Context, hash []byte) (User, error) {
	const q = `
		SELECT u.seq, u.account_id, u.id, u.name, u.role, u.password, u.removed_at, u.created_at, s.last_used_at
		  FROM user_sessions s JOIN users u ON u.seq = s.user_seq
		 WHERE s.hash = $1 AND s.expires_at > $2 AND s.last_used_at > $3 AND u.removed_at IS NULL`
	var row struct {
		User
		LastUsedAt Time `db:"last_used_at"`
	}
	now := s.now()
	if err := s.read.GetContext(ctx, &row, q, hash, NewTime(now), NewTime(now.Add(-SessionIdleTTL))); err != nil {
		return User{}, s.wrap(err, "session")
	}
	if now.Sub(row.LastUsedAt.Time) < sessionUsedEvery {
		return row.User, nil
	}
	const note = `UPDATE user_sessions SET last_used_at = $2 WHERE hash = $1 AND last_used_at < $2`
	_, err := s.exec(ctx, "note session", note, hash, NewTime(now))
	return row.User, err
}

// EndSession ends the session whose token has this hash, if there is one.
func (s *Store) EndSession(ctx context.Context, hash []byte) error {
	_, err := s.exec(ctx, "end session", `DELETE FROM user_sessions WHERE hash = $1`, hash)
	return err
}

// LinkUser returns the user whom the link is for whose token has this hash. It
// returns ErrNotFound if there is none, it has ended, or was used. It does not
// use it.
func (s *Store) LinkUser(ctx context.Context, hash []byte) (User, error) {
	const q = `
		SELECT ` + userColumns + ` FROM users
		 WHERE seq = (SELECT user_seq FROM user_links WHERE hash = $1 AND expires_at > $2) AND removed_at IS NULL`
	return readOne[User](ctx, s, "one-time link", q, hash, NewTime(s.now()))
}

// UseLink sets the password of the user whom the link is for, ends what they are
// signed in to, and starts a session. The link has ended with that. ErrNotFound as
// LinkUser.
func (s *Store) UseLink(ctx context.Context, link []byte, password string, session []byte) (User, error) {
	const (
		use = `DELETE FROM user_links WHERE hash = $1 AND expires_at > $2 RETURNING user_seq`
		set = `UPDATE users SET password = $2 WHERE seq = $1 AND removed_at IS NULL RETURNING ` + userColumns
	)
	return transact(ctx, s, "use one-time link", func(tx *sqlx.Tx) (u User, err error) {
		seq, err := getOne[int64](ctx, tx, use, link, NewTime(s.now()))
		if err == nil {
			u, err = getOne[User](ctx, tx, set, seq, password)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, endOthers, seq, session)
		}
		if err == nil {
			err = s.insertSession(ctx, tx, u, session)
		}
		return u, err
	})
}

// LeaveNote keeps a secret for a session until TakeNote returns it, but no longer
// than SessionNoteTTL or the session. The secret is encrypted at rest. A later
// note with the same subject replaces an earlier one. It returns ErrNotFound if
// the session has ended.
func (s *Store) LeaveNote(ctx context.Context, session []byte, subject, secret string) error {
	const q = `
		INSERT INTO session_notes (session_hash, subject, sealed, expires_at)
		SELECT hash, $2, $3, $4 FROM user_sessions WHERE hash = $1
		ON CONFLICT (session_hash, subject) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at`
	sealed := s.seal.Seal(noteLabel(session, subject), []byte(secret))
	return s.execOne(ctx, "leave note", "session", q, session, subject, sealed, NewTime(s.now().Add(SessionNoteTTL)))
}

// TakeNote returns the secret that LeaveNote kept, and deletes it. It returns
// ErrNotFound if there is none, it was taken before, or it has expired.
func (s *Store) TakeNote(ctx context.Context, session []byte, subject string) (string, error) {
	const q = `DELETE FROM session_notes WHERE session_hash = $1 AND subject = $2 AND expires_at > $3 RETURNING sealed`
	sealed, err := transact(ctx, s, "take note", func(tx *sqlx.Tx) ([]byte, error) {
		return getOne[[]byte](ctx, tx, q, session, subject, NewTime(s.now()))
	})
	if err != nil {
		return "", err
	}
	secret, err := s.seal.Open(noteLabel(session, subject), sealed)
	return string(secret), errIn("note "+subject, err)
}

func noteLabel(session []byte, subject string) string {
	return fmt.Sprintf("note %x %s", session, subject)
}

const (
	// isUnread is the condition that the user u has not read the message m, or marked
	// it as unread.
	isUnread = `m.direction = 'in' AND NOT m.quarantined AND (m.created_at > u.created_at AND m.created_at > u.read_to
			AND NOT EXISTS (SELECT 1 FROM message_reads r WHERE r.message_seq = m.seq AND r.user_seq = u.seq)
		OR EXISTS (SELECT 1 FROM message_reads r WHERE r.user_seq = u.seq AND r.message_seq = m.seq AND r.unread))`
	// countedUnread is how many of the latest messages of an inbox UnreadInInboxes
	// reads.
	countedUnread = 1000
)

// UnreadMessages returns which of these messages the user has not read, by ID.
func (s *Store) UnreadMessages(ctx context.Context, userSeq int64, ids []string) (map[string]bool, error) {
	w := conditions("u.seq = ?", userSeq)
	w.in("m.id", ids)
	return s.unread(ctx, `SELECT m.id FROM users u JOIN messages m ON m.account_id = u.account_id`+w.sql()+` AND `+isUnread, w)
}

// UnreadThreads is UnreadMessages for threads: those with a message that the user has
// not read.
func (s *Store) UnreadThreads(ctx context.Context, userSeq int64, ids []string) (map[string]bool, error) {
	w := conditions("u.seq = ?", userSeq)
	w.in("t.id", ids)
	return s.unread(ctx, `SELECT t.id FROM users u JOIN threads t ON t.account_id = u.account_id`+w.sql()+
		` AND EXISTS (SELECT 1 FROM messages m WHERE m.thread_seq = t.seq AND `+isUnread+`)`, w)
}

func (s *Store) unread(ctx context.Context, q string, w *where) (map[string]bool, error) {
	ids, err := readAll[string](ctx, s, "unread messages", q, w.args...)
	return set(ids), err
}

// UnreadInInboxes returns how many of the latest messages of each of these inboxes
// the user has not read, by ID.
func (s *Store) UnreadInInboxes(ctx context.Context, userSeq int64, ids []string) (map[string]int, error) {
	w := conditions("u.seq = ?", userSeq)
	w.in("i.id", ids)
	q := `SELECT i.id, (SELECT count(*) FROM (SELECT seq, direction, quarantined, created_at FROM messages
			WHERE inbox_seq = i.seq ORDER BY created_at DESC LIMIT ` + strconv.Itoa(countedUnread) + `) m WHERE ` + isUnread + `) AS n
		FROM users u JOIN inboxes i ON i.account_id = u.account_id` + w.sql()
	type row struct {
		ID string `db:"id"`
		N  int    `db:"n"`
	}
	rows, err := readAll[row](ctx, s, "unread messages of inboxes", q, w.args...)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int, len(rows))
	for _, r := range rows {
		counts[r.ID] = r.N
	}
	return counts, nil
}

// MarkRead notes that the user has read these messages, and that someone has.
func (s *Store) MarkRead(ctx context.Context, userSeq int64, ids []string) error {
	unread, err := s.UnreadMessages(ctx, userSeq, ids)
	if err != nil || len(unread) == 0 {
		return err
	}
	w := conditions("u.seq = ?", userSeq)
	w.in("m.id", slices.Collect(maps.Keys(unread)))
	q := `INSERT INTO message_reads (message_seq, user_seq) SELECT m.seq, u.seq FROM users u JOIN messages m ON m.account_id = u.account_id` +
		w.sql() + ` AND ` + isUnread + ` ON CONFLICT (message_seq, user_seq) DO UPDATE SET unread = false`
	return s.inTx(ctx, "mark messages as read", func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, q, w.args...); err != nil {
			return err
		}
		return execIn(ctx, tx, `UPDATE messages SET read_at = ? WHERE read_at IS NULL AND id IN (?)`, NewTime(s.now()), slices.Sorted(maps.Keys(unread)))
	})
}

// MarkUnread notes that a received message is unread for the user. It returns
// ErrNotFound if the user's account has no such message.
func (s *Store) MarkUnread(ctx context.Context, userSeq int64, id string) error {
	const q = `INSERT INTO message_reads (message_seq, user_seq, unread)
		SELECT m.seq, u.seq, true FROM users u JOIN messages m ON m.account_id = u.account_id
		WHERE u.seq = $1 AND m.id = $2 AND m.direction = 'in' AND NOT m.quarantined
		ON CONFLICT (message_seq, user_seq) DO UPDATE SET unread = true`
	return s.execOne(ctx, "mark message as unread", "message "+id, q, userSeq, id)
}

// MarkAllRead notes that the user has read all messages that were received until now.
func (s *Store) MarkAllRead(ctx context.Context, userSeq int64) error {
	return s.inTx(ctx, "mark all messages as read", func(tx *sqlx.Tx) error {
		return execAll(ctx, tx, []statement{
			{`UPDATE message_reads SET unread = false WHERE user_seq = $1 AND unread`, []any{userSeq}},
			{`UPDATE users SET read_to = $2 WHERE seq = $1`, []any{userSeq, NewTime(s.now())}},
		})
	})
}
