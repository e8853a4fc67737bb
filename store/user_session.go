package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// SessionLongest is how long a session lasts at most.
	SessionLongest = 14 * 24 * time.Hour
	// SessionIdle is how long a session lasts that is not used.
	SessionIdle = 3 * 24 * time.Hour
	// sessionUsedEvery is how often it is written that a session was used.
	sessionUsedEvery = 5 * time.Minute
)

// StartSession makes a session of u, who gave the password that is kept with u;
// the session's token has this hash: whoever has the token is the user until it
// ends. ErrNotFound when the user was removed, or has no or another password by
// now.
func (s *Store) StartSession(ctx context.Context, u User, hash []byte) error {
	return s.inTx(ctx, "start session", func(tx *sqlx.Tx) error { return s.insertSession(ctx, tx, u, hash) })
}

// insertSession also forgets sessions that have ended. The password is looked at
// again: it may have been taken away, and another set, while it was being checked.
func (s *Store) insertSession(ctx context.Context, tx *sqlx.Tx, u User, hash []byte) error {
	const (
		old = `DELETE FROM user_sessions WHERE expires_at <= $1`
		// The no-op update holds the user's row against a reset that runs now.
		hold = `UPDATE users SET name = name WHERE seq = $1 AND removed_at IS NULL AND password = $2`
		q    = `INSERT INTO user_sessions (hash, user_seq, expires_at, last_used_at, created_at) VALUES ($1, $2, $3, $4, $4)`
	)
	now := s.now()
	if _, err := tx.ExecContext(ctx, old, NewTime(now)); err != nil {
		return err
	}
	res, err := tx.ExecContext(ctx, hold, u.Seq, u.Password)
	if err != nil {
		return err
	}
	if err := one(res, "user", ErrNotFound); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, q, hash, u.Seq, NewTime(now.Add(SessionLongest)), NewTime(now))
	return err
}

// SessionUser returns the user whose session's token has this hash. ErrNotFound
// when there is none, or it has ended.
func (s *Store) SessionUser(ctx context.Context, hash []byte) (User, error) {
	const q = `
		SELECT u.seq, u.account_id, u.id, u.name, u.password, u.removed_at, u.created_at, s.last_used_at
		  FROM user_sessions s JOIN users u ON u.seq = s.user_seq
		 WHERE s.hash = $1 AND s.expires_at > $2 AND s.last_used_at > $3 AND u.removed_at IS NULL`
	var row struct {
		User
		LastUsedAt Time `db:"last_used_at"`
	}
	now := s.now()
	if err := s.reads.One(ctx, &row, q, hash, NewTime(now), NewTime(now.Add(-SessionIdle))); err != nil {
		return User{}, s.wrap(err, "session")
	}
	if now.Sub(row.LastUsedAt.Time) < sessionUsedEvery {
		return row.User, nil
	}
	return row.User, s.noteSession(ctx, hash, now)
}

func (s *Store) noteSession(ctx context.Context, hash []byte, now time.Time) error {
	const q = `UPDATE user_sessions SET last_used_at = $2 WHERE hash = $1 AND last_used_at < $2`
	return s.inTx(ctx, "note session", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, q, hash, NewTime(now))
		return err
	})
}

// EndSession ends the session whose token has this hash, if there is one.
func (s *Store) EndSession(ctx context.Context, hash []byte) error {
	const q = `DELETE FROM user_sessions WHERE hash = $1`
	return s.inTx(ctx, "end session", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, q, hash)
		return err
	})
}

// LinkUser returns the user whom the link is for whose token has this hash.
// ErrNotFound when there is none, it has ended, or was used. It does not use it.
func (s *Store) LinkUser(ctx context.Context, hash []byte) (User, error) {
	const q = `
		SELECT u.seq, u.account_id, u.id, u.name, u.password, u.removed_at, u.created_at
		  FROM user_links l JOIN users u ON u.seq = l.user_seq
		 WHERE l.hash = $1 AND l.expires_at > $2 AND u.removed_at IS NULL`
	var u User
	err := s.read.GetContext(ctx, &u, q, hash, NewTime(s.now()))
	return u, s.wrap(err, "one-time link")
}

// UseLink sets the password of the user whom the link is for, ends what they are
// signed in to, and starts a session. The link has ended with that. ErrNotFound as
// LinkUser.
func (s *Store) UseLink(ctx context.Context, link []byte, password string, session []byte) (User, error) {
	const (
		use = `DELETE FROM user_links WHERE hash = $1 AND expires_at > $2 RETURNING user_seq`
		set = `UPDATE users SET password = $2 WHERE seq = $1 AND removed_at IS NULL RETURNING ` + userColumns
		end = `DELETE FROM user_sessions WHERE user_seq = $1`
	)
	var u User
	err := s.inTx(ctx, "use one-time link", func(tx *sqlx.Tx) error {
		u = User{}
		var seq int64
		err := tx.GetContext(ctx, &seq, use, link, NewTime(s.now()))
		if err == nil {
			err = tx.GetContext(ctx, &u, set, seq, password)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, end, seq)
		}
		if err != nil {
			return err
		}
		return s.insertSession(ctx, tx, u, session)
	})
	if err != nil {
		return User{}, err
	}
	return u, nil
}
