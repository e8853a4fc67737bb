package store

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32
)

// ErrTooManyWebhooks means that the account has MaxWebhooks endpoints.
var ErrTooManyWebhooks = fmt.Errorf("an account has at most %d webhook endpoints", MaxWebhooks)

// Webhook is a webhook endpoint: where an account wants to be notified of events.
type Webhook struct {
	Seq       int64              `db:"seq"`
	AccountID int64              `db:"account_id"`
	ID        string             `db:"id"`
	URL       string             `db:"url"`
	Events    *JSON[[]EventType] `db:"events"`  // nil: all, later ones too
	Inboxes   *JSON[[]InboxRef]  `db:"inboxes"` // nil: of all inboxes
	Active    bool               `db:"active"`
	// Headers are the header fields that requests have in addition, by name, with sealed
	// values. NewHeaders replaces them when it is not nil.
	Headers    *JSON[map[string][]byte] `db:"headers"`
	NewHeaders map[string]string        `db:"-"`
	// Format is the vendor whose API made the endpoint, in whose form events are sent; nil
	// for ours.
	Format *string `db:"format"`
	// OwnerKey is the id of the key whose revocation turns the endpoint off. It is nil
	// for an endpoint of a person, or that an admin key has changed.
	OwnerKey *string `db:"owner_key"`
	// URLBy and SecretBy are the ids of the keys that last changed the URL and the
	// secret. Revoking one of them turns the endpoint off too. They are nil when no key
	// has changed them since the endpoint was created or an admin key changed it.
	URLBy    *string `db:"url_by"`
	SecretBy *string `db:"secret_by"`
	// DisabledReason is why the service disabled the endpoint.
	DisabledReason *string `db:"disabled_reason"`
	// OldUntil is until when the secret before the last rotation signs too.
	OldUntil *Time `db:"old_until"`
	// FailingSince is when the current series of failed attempts began, or nil
	// after a success.
	FailingSince *Time `db:"failing_since"`
	CreatedAt    Time  `db:"created_at"`

	Sealed    []byte `db:"secret"`
	SealedOld []byte `db:"old_secret"`

	// Owner is the key OwnerKey while the endpoint is edited; nil if it is revoked.
	Owner *Key `db:"-"`
}

// InboxRef names an inbox.
type InboxRef struct {
	Seq int64  `db:"seq" json:"seq"`
	ID  string `db:"id"  json:"id"`
}

const (
	webhookWritten = `account_id, id, url, events, inboxes, active, secret, created_at, owner_key, headers, format`
	webhookColumns = `seq, disabled_reason, old_until, failing_since, old_secret, url_by, secret_by, ` + webhookWritten
	saveWebhook    = `UPDATE webhook_endpoints SET url = :url, events = :events, inboxes = :inboxes, active = :active,
		disabled_reason = :disabled_reason, failing_since = :failing_since, owner_key = :owner_key, url_by = :url_by,
		secret_by = :secret_by, secret = :secret, old_secret = :old_secret, old_until = :old_until, headers = :headers WHERE seq = :seq`
)

// Wants reports whether the endpoint is notified of events of this type that are
// about this inbox, or about none (0).
func (w *Webhook) Wants(typ EventType, inboxSeq int64) bool {
	if w.Events != nil && !slices.Contains(w.Events.V, typ) {
		return false
	}
	return w.Inboxes == nil || slices.ContainsFunc(w.Inboxes.V, func(in InboxRef) bool { return in.Seq == inboxSeq })
}

// wantsOf is Wants for an inbox by its id, or nil for none.
func (w *Webhook) wantsOf(typ EventType, inboxID *string) bool {
	if w.Events != nil && !slices.Contains(w.Events.V, typ) {
		return false
	}
	return w.Inboxes == nil || inboxID != nil && slices.ContainsFunc(w.Inboxes.V, func(in InboxRef) bool { return in.ID == *inboxID })
}

// SeenBy reports whether a key that sees only these inboxes, or all when it is
// nil, sees the endpoint: it does not see one that receives more than the key may
// read.
func (w *Webhook) SeenBy(inboxIDs []string) bool {
	if inboxIDs == nil {
		return true
	}
	return w.Inboxes != nil &&
		!slices.ContainsFunc(w.Inboxes.V, func(in InboxRef) bool { return !slices.Contains(inboxIDs, in.ID) })
}

func webhookLabel(id string) string { return "webhook/" + id }

// newSecret makes a signing secret as Standard Webhooks has it.
func newSecret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// WebhookKeys returns the keys that sign what the endpoint is sent at this time:
// that of its secret and, for a while after a rotation, that of the one before.
func (s *Store) WebhookKeys(w Webhook, at time.Time) ([][]byte, error) {
	sealed := [][]byte{w.Sealed}
	if w.SealedOld != nil && w.OldUntil != nil && at.Before(w.OldUntil.Time) {
		sealed = append(sealed, w.SealedOld)
	}
	keys := make([][]byte, 0, len(sealed))
	for _, b := range sealed {
		secret, err := s.seal.Open(webhookLabel(w.ID), b)
		if err != nil {
			return nil, fmt.Errorf("secret of %s: %w", w.ID, err)
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(secret), secretPrefix))
		if err != nil {
			return nil, fmt.Errorf("secret of %s: %w", w.ID, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func headerLabel(id string) string { return webhookLabel(id) + "/headers" }

// sealHeaders returns the header fields of an endpoint as stored.
func (s *Store) sealHeaders(id string, w Webhook) *JSON[map[string][]byte] {
	if w.NewHeaders == nil {
		return w.Headers
	}
	sealed := map[string][]byte{}
	for name, value := range w.NewHeaders {
		sealed[name] = s.seal.Seal(headerLabel(id), []byte(value))
	}
	return &JSON[map[string][]byte]{V: sealed}
}

// WebhookHeaders returns the header fields that requests to the endpoint have in addition.
func (s *Store) WebhookHeaders(w Webhook) (map[string]string, error) {
	all := map[string]string{}
	if w.Headers == nil {
		return all, nil
	}
	for name, sealed := range w.Headers.V {
		value, err := s.seal.Open(headerLabel(w.ID), sealed)
		if err != nil {
			return nil, fmt.Errorf("header %s of %s: %w", name, w.ID, err)
		}
		all[name] = string(value)
	}
	return all, nil
}

// CreateWebhook stores w, which carries AccountID, URL, Events, Active, NewHeaders, Format
// and OwnerKey, and returns it with its secret, which is not returned again. When
// inboxIDs is not nil, the endpoint receives only events of these inboxes. It
// returns ErrTooManyWebhooks if the account has enough, ErrState when OwnerKey
// has been revoked.
func (s *Store) CreateWebhook(ctx context.Context, w Webhook, inboxIDs []string) (Webhook, string, error) {
	now, secret := s.now(), newSecret()
	w.ID, w.CreatedAt = NewID("wh_", now), NewTime(now)
	w.Sealed, w.Headers = s.seal.Seal(webhookLabel(w.ID), []byte(secret)), s.sealHeaders(w.ID, w)
	out, err := transact(ctx, s, "create webhook endpoint", func(tx *sqlx.Tx) (Webhook, error) {
		if err := s.lockAccountFor(ctx, tx, w.AccountID, w.OwnerKey); err != nil {
			return w, err
		}
		n, err := getOne[int](ctx, tx, `SELECT count(*) FROM webhook_endpoints WHERE account_id = $1`, w.AccountID)
		if err == nil && n >= MaxWebhooks {
			err = ErrTooManyWebhooks
		}
		if err == nil && inboxIDs != nil {
			w.Inboxes, err = inboxRefs(ctx, tx, w.AccountID, inboxIDs)
		}
		if err == nil {
			w.Seq, err = insertRow(ctx, tx, "webhook_endpoints", webhookWritten, w)
		}
		return w, err
	})
	return out, secret, err
}

func inboxRefs(ctx context.Context, tx *sqlx.Tx, accountID int64, ids []string) (*JSON[[]InboxRef], error) {
	refs := JSON[[]InboxRef]{V: []InboxRef{}}
	if len(ids) == 0 {
		return &refs, nil
	}
	err := selectIn(ctx, tx, &refs.V, `SELECT seq, id FROM inboxes WHERE account_id = ? AND id IN (?) ORDER BY seq`, accountID, ids)
	return &refs, errIn("inboxes of the endpoint", err)
}

// Webhook returns the account's endpoint.
func (s *Store) Webhook(ctx context.Context, accountID int64, id string) (Webhook, error) {
	return readOne[Webhook](ctx, s, "webhook endpoint", oneWebhook, accountID, id)
}

const oneWebhook = `SELECT ` + webhookColumns + ` FROM webhook_endpoints WHERE account_id = $1 AND id = $2`

// Webhooks returns all endpoints of the account, newest first: there are at most
// MaxWebhooks.
func (s *Store) Webhooks(ctx context.Context, accountID int64) ([]Webhook, error) {
	const q = `SELECT ` + webhookColumns + ` FROM webhook_endpoints WHERE account_id = $1 ORDER BY seq DESC`
	return readAll[Webhook](ctx, s, "webhook endpoints", q, accountID)
}

// ListWebhooks returns a page of the account's endpoints, newest first, that a
// key sees which sees only these inboxes, or all when inboxIDs is nil.
func (s *Store) ListWebhooks(ctx context.Context, accountID int64, inboxIDs []string, p Page) (List[Webhook], error) {
	scope := fmt.Sprintf("webhooks/%d/%t/%q", accountID, inboxIDs != nil, inboxIDs)
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Webhook]{}, err
	}
	all, err := s.Webhooks(ctx, accountID)
	if err != nil {
		return List[Webhook]{}, err
	}
	rows := slices.DeleteFunc(all, func(w Webhook) bool { return w.Seq >= before || !w.SeenBy(inboxIDs) })
	return page(s, scope, p.Limit, rows, func(w Webhook) position { return position{Seq: w.Seq} }), nil
}

// InboxRefs returns the references of inboxes of the account. It returns ErrNotFound,
// with the id, if one is missing or deleted.
func (s *Store) InboxRefs(ctx context.Context, accountID int64, ids []string) (*JSON[[]InboxRef], error) {
	refs := &JSON[[]InboxRef]{V: []InboxRef{}}
	for _, id := range ids {
		in, err := s.Inbox(ctx, accountID, id)
		if err != nil {
			return nil, fmt.Errorf("inbox %s: %w", id, err)
		}
		refs.V = append(refs.V, InboxRef{in.Seq, in.ID})
	}
	return refs, nil
}

// UpdateWebhook lets edit change URL, events, inboxes, active, and the keys that the
// endpoint is turned off with. An endpoint that is turned on starts anew: why it was off
// and since when it failed is forgotten, and what was left pending is due. An error of
// edit changes nothing. It returns ErrState when the key by, which is nil for a person,
// has been revoked.
func (s *Store) UpdateWebhook(ctx context.Context, accountID int64, id string, by *string, edit func(*Webhook) error) (Webhook, error) {
	const resume = `UPDATE webhook_deliveries SET next_attempt_at = $2 WHERE endpoint_seq = $1 AND next_attempt_at > $2 AND NOT leased`
	w, err := transact(ctx, s, "update webhook endpoint", func(tx *sqlx.Tx) (Webhook, error) {
		return s.editWebhook(ctx, tx, accountID, id, by, func(w *Webhook) error {
			was := w.Active
			if err := edit(w); err != nil {
				return err
			}
			w.Headers = s.sealHeaders(id, *w)
			if !w.Active || was {
				return nil
			}
			w.DisabledReason, w.FailingSince = nil, nil
			_, err := tx.ExecContext(ctx, resume, w.Seq, NewTime(s.now()))
			return errIn("resume deliveries", err)
		})
	})
	if err == nil {
		s.changed([]topic{{kind: topicWebhooks}}, 1)
	}
	return w, err
}

// RotateWebhook gives the endpoint a new secret and returns both. The one before
// goes on to sign for OldSecretTTL; one that was before that ends at once. edit may change
// the keys that the endpoint is turned off with; its error is as that of UpdateWebhook.
// It returns ErrState when the key by, which is nil for a person, has been revoked.
func (s *Store) RotateWebhook(ctx context.Context, accountID int64, id string, by *string, edit func(*Webhook) error) (Webhook, string, error) {
	secret := newSecret()
	w, err := transact(ctx, s, "rotate secret", func(tx *sqlx.Tx) (Webhook, error) {
		return s.editWebhook(ctx, tx, accountID, id, by, func(w *Webhook) error {
			until := NewTime(s.now().Add(OldSecretTTL))
			w.SealedOld, w.OldUntil, w.Sealed = w.Sealed, &until, s.seal.Seal(webhookLabel(id), []byte(secret))
			w.SecretBy = by
			return edit(w)
		})
	})
	return w, secret, err
}

// DeleteWebhook deletes the endpoint. Its deliveries, which may be many and which
// no one sees any more, go with the next SweepDeliveries. What is being sent to
// it at this moment may still arrive.
func (s *Store) DeleteWebhook(ctx context.Context, accountID int64, id string) error {
	return s.execOne(ctx, "delete webhook endpoint", "webhook endpoint "+id, `DELETE FROM webhook_endpoints WHERE account_id = $1 AND id = $2`, accountID, id)
}

// lockWebhook reads the endpoint and keeps others from changing it until the end
// of the transaction.
func (s *Store) lockWebhook(ctx context.Context, tx *sqlx.Tx, accountID int64, id string) (Webhook, error) {
	w, err := getOne[Webhook](ctx, tx, oneWebhook+s.engine.LockRow(), accountID, id)
	return w, s.wrap(err, "webhook endpoint "+id)
}

// editWebhook lets edit change an endpoint, with its owner, for the key by, which may be nil,
// and saves it. It locks the account first, as lockAccountFor does.
func (s *Store) editWebhook(
	ctx context.Context, tx *sqlx.Tx, accountID int64, id string, by *string, edit func(*Webhook) error,
) (Webhook, error) {
	if err := s.lockAccountFor(ctx, tx, accountID, by); err != nil {
		return Webhook{}, err
	}
	return editRow(ctx, s, tx, oneWebhook, []any{accountID, id}, func(w *Webhook) error {
		if w.OwnerKey != nil {
			owner, err := getAll[Key](ctx, tx, oneKey, accountID, *w.OwnerKey)
			if w.Owner = first(owner); err != nil {
				return errIn("read the owner", err)
			}
		}
		return edit(w)
	}, saveWebhook)
}
