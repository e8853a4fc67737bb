package store

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// SuspendInbox makes an inbox, of whatever account, refuse mail and sending
// until ResumeInbox; what it has queued still goes out. It is named by its id or
// its address. ErrState when it is suspended already.
func (s *Store) SuspendInbox(ctx context.Context, name string) (Inbox, error) {
	return s.turnInbox(ctx, "suspend inbox", name, InboxActive, InboxSuspended)
}

// ResumeInbox ends what SuspendInbox began. ErrState when the inbox is not
// suspended.
func (s *Store) ResumeInbox(ctx context.Context, name string) (Inbox, error) {
	return s.turnInbox(ctx, "resume inbox", name, InboxSuspended, InboxActive)
}

func (s *Store) turnInbox(ctx context.Context, what, name string, from, to InboxStatus) (Inbox, error) {
	const (
		q    = `SELECT ` + inboxColumns + ` FROM inboxes WHERE (id = $1 OR address = $1) AND status <> 'deleted'`
		turn = `UPDATE inboxes SET status = $2, updated_at = $3 WHERE seq = $1`
	)
	var in Inbox
	err := s.inTx(ctx, what, func(tx *sqlx.Tx) error {
		in = Inbox{}
		if err := tx.GetContext(ctx, &in, q+s.engine.LockRow(), name); err != nil {
			return s.wrap(err, "inbox "+name)
		}
		if in.Status != from {
			return fmt.Errorf("inbox %s is %s: %w", name, in.Status, ErrState)
		}
		in.Status, in.UpdatedAt = to, NewTime(s.now())
		_, err := tx.ExecContext(ctx, turn, in.Seq, in.Status, in.UpdatedAt)
		return err
	})
	return in, err
}
