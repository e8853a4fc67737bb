package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/domains"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

const (
	slowDatabase = 50 * time.Millisecond // for a query that reads nothing
	largeLog     = 256 << 20             // size of SQLite's WAL; the writer truncates it at 64 MB when no reader prevents it
	someSkew     = time.Second           // of the database's clock
	muchSkew     = 30 * time.Second      // leases and signatures fail
)

// database checks that the database is reachable and how fast it responds.
func (v *visit) database(ctx context.Context) []Result {
	o, ready := v.store.get(ctx)
	switch {
	case !ready:
		return one(fail("it does not respond").advise("check POSTROOM_DATABASE and the server"))
	case errors.Is(o.err, errNoDatabase):
		return one(warn("no database yet").advise("start `postroom serve` once, or set POSTROOM_DATA or POSTROOM_DATABASE"))
	case errors.Is(o.err, store.ErrSchemaOld) && v.cfg.Migrates:
		return one(warn("its schema is older than this program").advise("run postroom migrate, or start `postroom serve`"))
	case errors.Is(o.err, store.ErrSchemaOld):
		return one(fail("its schema is older than this program").advise("back it up and run: postroom migrate"))
	case errors.Is(o.err, store.ErrSchemaNew):
		return one(fail("%v", o.err).advise("use the newer program"))
	case o.err != nil:
		return one(fail("%v", o.err).advise("check POSTROOM_DATABASE, and the server or the file"))
	}
	in, err := o.store.Inspect(ctx)
	if err != nil {
		return one(fail("%v", err).advise("check the server, or the disk of the file"))
	}
	out := one(ok("%s %s, schema up to date, response time %s", in.Engine, in.Version, in.Latency.Round(10*time.Microsecond)))
	if in.Latency > slowDatabase {
		out = one(warn("%s %s takes %s for an empty query", in.Engine, in.Version, in.Latency.Round(time.Millisecond)).
			advise("move it closer to this machine, or check its load"))
	}
	if in.LogSize > largeLog {
		out = append(out, warn("its write-ahead log has grown to %s", size(uint64(in.LogSize))).
			advise("find the program with a long read; restarting `postroom serve` shortens the log"))
	}
	return out
}

// secret checks the installation secret and the database's own.
func (v *visit) secret(ctx context.Context) []Result {
	if v.cfg.NoDatabase {
		return one(skipped("the first start creates it"))
	}
	s, none := v.storeOr(ctx)
	if none != nil {
		return none
	}
	if err := v.cfg.ProveSecret(ctx, s); err != nil {
		return one(fail("%v", err).advise("restore the original secret from the backup: without it the encrypted data in cannot read the database"))
	}
	return one(ok("it matches the database"))
}

// clock compares the local clock with the database server's, or asks the system
// whether its clock is synchronized.
func (v *visit) clock(ctx context.Context) []Result {
	const keep = "synchronize the clock with NTP: timedatectl set-ntp true"
	var out []Result
	if o, ready := v.store.get(ctx); ready && o.err == nil {
		if in, err := o.store.Inspect(ctx); err == nil && in.Ahead != nil {
			skew := in.Ahead.Abs()
			switch {
			case skew > muchSkew:
				out = append(out, fail("it differs by %s from the database: the node neither sends nor deletes mail", skew.Round(time.Millisecond)).advise(keep+", on this machine and the database server"))
			case skew > someSkew:
				out = append(out, warn("it differs by %s from the database", skew.Round(time.Millisecond)).advise(keep+", on this machine and the database server"))
			default:
				out = append(out, ok("it differs by %s from the database", skew.Round(time.Millisecond)))
			}
		}
	}
	if o, ready := v.store.get(ctx); ready && o.err == nil {
		if until, err := o.store.DeletionsPaused(ctx); err == nil && until != nil {
			out = append(out, fail("it may be wrong: deletion is paused until %s", until.UTC().Format(time.RFC3339)).
				advise("if the clock is correct: postroom maintenance confirm"))
		}
	}
	synced, known := v.cfg.ClockSynced()
	switch {
	case known && synced:
		out = append(out, ok("the system synchronizes it"))
	case known:
		out = append(out, warn("the system does not synchronize it: DKIM signatures and TLS depend on it").advise(keep))
	case len(out) == 0:
		out = append(out, skipped("nothing to compare it with: it shows %s", v.cfg.Now().UTC().Format(time.RFC3339)))
	}
	return out
}

// blobs writes, reads and deletes a probe in the blob storage.
func (v *visit) blobs(ctx context.Context) []Result {
	const advice = "check POSTROOM_BLOBS, the folder or bucket, and its credentials"
	b, err := v.cfg.OpenBlobs(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return one(warn("the folder for large messages does not exist yet").advise("`postroom serve` creates it"))
	}
	if err != nil {
		return one(fail("%v", err).advise(advice))
	}
	defer func() { _ = b.Close() }() // nothing to flush
	start := time.Now()
	if err := probeBlobs(ctx, b); err != nil {
		return one(fail("cannot store large messages: %v", err).advise(advice))
	}
	return one(ok("wrote, read and deleted a test file in %s", time.Since(start).Round(100*time.Microsecond)))
}

func probeBlobs(ctx context.Context, b store.Blobs) error {
	const probe = "postroom doctor was here"
	key, err := b.Put(ctx, strings.NewReader(probe), int64(len(probe)))
	if err != nil {
		return err
	}
	r, err := b.Open(ctx, key)
	if err != nil {
		return errors.Join(err, b.Delete(ctx, key))
	}
	got, err := io.ReadAll(r)
	if err == nil && string(got) != probe {
		err = errors.New("read different data than was written")
	}
	return errors.Join(err, r.Close(), b.Delete(ctx, key))
}

const (
	lateQueue   = 2 * time.Minute // a node claims due work within seconds
	failingFor  = time.Hour
	maxWebhooks = 20
)

// queue checks how long deliveries have been due.
func (v *visit) queue(ctx context.Context) []Result {
	s, none := v.storeOr(ctx)
	if none != nil {
		return none
	}
	due, age, err := s.QueueLag(ctx)
	if err != nil {
		return one(fail("%v", err))
	}
	out := one(lag(int64(due), age.Round(time.Second)))
	held, err := s.Held(ctx)
	switch {
	case err != nil:
		out = append(out, fail("%v", err))
	case !held.None():
		out = append(out, warn("held since a restore: %s, %s, %s", counted(held.Recipients, "recipient"),
			counted(held.Scheduled, "scheduled email"), plural(held.Deliveries, "webhook delivery", "webhook deliveries")).
			advise("`postroom held release` sends them, `postroom held drop` discards them"))
	}
	return out
}

// lag reports how many recipients are due, and for how long.
func lag(due int64, age time.Duration) Result {
	switch {
	case due == 0:
		return ok("no mail is due")
	case age > lateQueue:
		return fail("due: %s, the oldest for %s", counted(due, "recipient"), age).
			advise("start `postroom serve` or more nodes, and check the log")
	}
	return ok("due: %s, the oldest for %s", counted(due, "recipient"), age)
}

func counted(n int64, thing string) string { return plural(n, thing, thing+"s") }

func plural(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// webhooks finds endpoints that fail.
func (v *visit) webhooks(ctx context.Context) []Result {
	s, none := v.storeOr(ctx)
	if none != nil {
		return none
	}
	failing, err := s.FailingWebhooks(ctx, v.cfg.Now().Add(-failingFor), maxWebhooks)
	if err != nil {
		return one(fail("%v", err))
	}
	var out []Result
	for _, w := range failing {
		r := warn("%s is off", w.URL)
		if w.DisabledReason != nil {
			r = warn("%s is off: %s", w.URL, *w.DisabledReason)
		}
		if w.Active && w.FailingSince != nil {
			r = warn("no successful delivery to %s since %s", w.URL, w.FailingSince.UTC().Format(time.RFC3339))
		}
		out = append(out, r.advise("check its responses: GET /v1/webhooks/%s/deliveries", w.ID).about("", w.ID))
	}
	if len(out) == 0 {
		return one(ok("no failing webhooks"))
	}
	return out
}

// reserved lists the inboxes with names that mail for the operator goes to.
func (v *visit) reserved(ctx context.Context) []Result {
	s, none := v.storeOr(ctx)
	if none != nil {
		return none
	}
	names := mail.ReservedNames()
	for i, name := range names {
		names[i] = name + "@" + v.cfg.MailDomain
	}
	holders, err := s.Holders(ctx, names)
	if err != nil {
		return one(fail("%v", err).advise("check the database"))
	}
	var out []Result
	for _, h := range holders {
		out = append(out, warn("inbox %s of account %s has this reserved address and reads its mail", h.InboxID, h.AccountID).
			advise("if you did not assign it: postroom inbox suspend %s, and find out who uses the account", h.InboxID).about("", h.Address))
	}
	if out == nil {
		out = one(ok("no inbox has a reserved address"))
	}
	return out
}

// approvers checks that no approver is at a domain where an agent can have an inbox.
func (v *visit) approvers(ctx context.Context) []Result {
	if len(v.cfg.Approvers) == 0 {
		return one(ok("POSTROOM_APPROVERS is not set: only the dashboard, events and webhooks show new drafts"))
	}
	s, none := v.storeOr(ctx)
	if none != nil {
		return none
	}
	var out []Result
	for _, email := range v.cfg.Approvers {
		_, domain, _ := strings.Cut(email, "@")
		ours, err := domains.Receives(ctx, s, v.cfg.MailDomain, domain)
		switch {
		case err != nil:
			return one(fail("%v", err).advise("check the database"))
		case ours:
			out = append(out, fail("%s gets no email about drafts: an agent can have an inbox at that domain and approve its own drafts", email).
				advise("use an address at a domain that this installation does not receive for"))
		}
	}
	if out == nil {
		out = one(ok("%d, at domains without inboxes of this installation", len(v.cfg.Approvers)))
	}
	return out
}
