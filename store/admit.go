package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postroom/postroom/store/internal/batch"
)

const (
	senders = `SELECT seq, plan, paused_at, coalesce(pause_reason, '') FROM accounts WHERE seq IN ({rows}) ORDER BY seq`

	acceptedSince = `SELECT day, cast(sum(n) AS bigint) FROM daily_counts
		WHERE account_id = $1 AND inbox_seq = 0 AND day >= $2 AND kind = 'accepted' GROUP BY day`

	// The watch looks at the days of watchDays; resuming forgets what it counted.
	watchedSince = `SELECT kind, cast(sum(n) AS bigint) FROM daily_counts
		WHERE account_id = $1 AND inbox_seq = 0 AND day > $2 AND kind IN ('tried', 'hard', 'marked') GROUP BY kind`
	pauseSender = `UPDATE accounts SET paused_at = $2, pause_reason = $3 WHERE seq = $1 AND paused_at IS NULL`
)

// sender is what a new outbound message needs of its account.
type sender struct {
	plan         Plan
	paused       error
	today, month int64 // recipients accepted, where the plan has limits
}

// admit counts the recipients that the batch is to send to, and leaves out what
// an account may not send: it is paused, or its plan allows no more. An account
// with such limits is held until the commit, so that they are exact.
func (b *hotBatch) admit(ctx context.Context) error {
	var accounts [][2]int64
	for _, h := range b.all() {
		if h.sendsForReal() {
			accounts = append(accounts, [2]int64{h.msg.AccountID})
		}
	}
	if len(accounts) == 0 {
		return nil
	}
	all, err := b.readSenders(ctx, batch.Sorted(accounts))
	if err != nil {
		return errIn("read the sending accounts", err)
	}
	b.messages, b.emails = b.messages[:0], b.emails[:0]
	for i := range b.writes {
		w := &b.writes[i]
		if b.refused[i] = b.admitOne(w, all); b.refused[i] == nil {
			b.messages = append(b.messages, w.messages...)
			b.emails = append(b.emails, w.emails...)
		}
	}
	return nil
}

func (h *hotMessage) sendsForReal() bool {
	return h.msg.Direction == DirectionOut && !h.msg.TestMode
}

// toSend is how many recipients are to be sent to.
func (m *Message) toSend() (n int64) {
	for i := range m.Recipients {
		if m.Recipients[i].Status != RecipientSuppressed {
			n++
		}
	}
	return n
}

// admitOne counts the recipients of one write, or says why it must not be sent.
func (b *hotBatch) admitOne(w *hotWrite, all map[int64]*sender) error {
	more := map[int64]int64{}
	add := func(h *hotMessage) {
		if h.sendsForReal() {
			more[h.msg.AccountID] += h.msg.toSend()
		}
	}
	for _, h := range w.messages {
		add(h)
	}
	for _, h := range w.emails {
		add(h.hotMessage)
	}
	for account, n := range more {
		a := all[account]
		if a == nil {
			return fmt.Errorf("account %d: %w", account, ErrNotFound)
		}
		if a.paused != nil {
			return a.paused
		}
		if err := a.plan.check(a.today, a.month, n, b.now.Time); err != nil {
			return err
		}
	}
	for account, n := range more {
		all[account].today += n
		all[account].month += n
		b.counts[countKey{account, wholeAccount, dayOf(b.now.Time), countAccepted}] += n
	}
	return nil
}

func (b *hotBatch) readSenders(ctx context.Context, list [][2]int64) (map[int64]*sender, error) {
	all := make(map[int64]*sender, len(list))
	read := func(rows *sql.Rows) error {
		var (
			seq    int64
			plan   *string
			at     *Time
			reason string
			a      sender
		)
		if err := rows.Scan(&seq, &plan, &at, &reason); err != nil {
			return err
		}
		a.plan = b.store.plans.of(plan)
		if at != nil {
			a.paused = &PausedError{reason}
		}
		all[seq] = &a
		return nil
	}
	if err := b.store.hot.accounts.Find(ctx, b.tx, list, read); err != nil {
		return nil, err
	}
	var limited [][2]int64
	for _, key := range list {
		if a := all[key[0]]; a != nil && (a.plan.Daily > 0 || a.plan.Monthly > 0) {
			limited = append(limited, key)
		}
	}
	if err := b.store.hot.lockAccounts.Find(ctx, b.tx, limited, read); err != nil {
		return nil, err
	}
	for _, key := range limited {
		if err := b.readAccepted(ctx, key[0], all[key[0]]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (b *hotBatch) readAccepted(ctx context.Context, account int64, a *sender) error {
	first, _ := monthOf(b.now.Time)
	today := dayOf(b.now.Time)
	return batch.Scan(ctx, b.tx.StmtContext(ctx, b.store.hot.accepted), []any{account, first}, func(rows *sql.Rows) error {
		var day, n int64
		if err := rows.Scan(&day, &n); err != nil {
			return err
		}
		a.month += n
		if day == today {
			a.today += n
		}
		return nil
	})
}

// Sending stops when, of the recipients of the last watchDays, at least
// watchFrom, more than 5 in 100 were refused for good or more than 3 in 1000
// complained.
const (
	watchDays = 30
	watchFrom = 200
)

// overWatch says why an account must stop sending, or "".
func overWatch(tried, hard, marked int64) string {
	switch {
	case tried < watchFrom:
		return ""
	case marked*1000 > tried*3:
		return fmt.Sprintf("%d of %d recipients in %d days complained, more than 0.3 %%", marked, tried, watchDays)
	case hard*100 > tried*5:
		return fmt.Sprintf("%d of %d recipients in %d days bounced for good, more than 5 %%", hard, tried, watchDays)
	}
	return ""
}

// nearWatch says whether an account whose mail was complained about comes near to
// where it must stop sending: at more than 1 in 1000, which is what mailbox
// providers want their senders to stay below.
func nearWatch(tried, marked int64) bool { return tried >= watchFrom && marked*1000 > tried }

// pause is an account that stopped sending, or one that comes near to that: then
// there is no reason.
type pause struct {
	account       int64
	reason        string
	tried, marked int64
}

// pauseSenders stops the accounts that the batch brings over the limit of what
// may bounce or be complained about. It looks before the counts are written:
// who writes them holds them.
func (b *hotBatch) pauseSenders(ctx context.Context) error {
	if !b.store.watch {
		return nil
	}
	var accounts [][2]int64
	for k := range b.counts {
		if k.kind == countHard || k.kind == countMarked {
			accounts = append(accounts, [2]int64{k.account})
		}
	}
	for _, key := range batch.Sorted(accounts) {
		if err := b.pauseSender(ctx, key[0]); err != nil {
			return err
		}
	}
	return nil
}

func (b *hotBatch) pauseSender(ctx context.Context, account int64) error {
	today := dayOf(b.now.Time)
	n := map[countKind]int64{}
	err := batch.Scan(ctx, b.tx.StmtContext(ctx, b.store.hot.watched), []any{account, today - watchDays}, func(rows *sql.Rows) error {
		var kind countKind
		var sum int64
		err := rows.Scan(&kind, &sum)
		n[kind] += sum
		return err
	})
	if err != nil {
		return err
	}
	for _, kind := range []countKind{countTried, countHard, countMarked} {
		n[kind] += b.counts[countKey{account, wholeAccount, today, kind}]
	}
	p := pause{account, overWatch(n[countTried], n[countHard], n[countMarked]), n[countTried], n[countMarked]}
	if p.reason == "" {
		if b.counts[countKey{account, wholeAccount, today, countMarked}] > 0 && nearWatch(p.tried, p.marked) {
			b.paused = append(b.paused, p)
		}
		return nil
	}
	res, err := b.tx.StmtContext(ctx, b.store.hot.pause).ExecContext(ctx, account, b.now.UnixMicro(), p.reason)
	if err != nil {
		return err
	}
	if stopped, err := res.RowsAffected(); err != nil || stopped == 0 {
		return err
	}
	b.paused = append(b.paused, p)
	return nil
}

// tellOfPauses says which accounts stopped sending or come near to it, after the
// commit.
func (b *hotBatch) tellOfPauses(ctx context.Context) {
	for _, p := range b.paused {
		if p.reason == "" {
			b.store.log.WarnContext(ctx, "complaints come near to where sending is paused", "account", p.account,
				"complaints", p.marked, "recipients", p.tried)
			continue
		}
		b.store.log.WarnContext(ctx, "sending is paused", "account", p.account, "reason", p.reason)
	}
}
