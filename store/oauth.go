package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// The rate limits of OAuth count registrations, and requests with codes and tokens.
const (
	RateRegister RateKind = "register"
	RateToken    RateKind = "token"
)

// ErrReused means that an authorization code or a refresh token was used before. The
// key of its grant is revoked now.
var ErrReused = errors.New("was used before")

// OAuthClient is an application that registered itself to ask people for access. Its
// name is what it calls itself.
type OAuthClient struct {
	ID           string         `db:"id"`
	Name         string         `db:"name"`
	RedirectURIs JSON[[]string] `db:"redirect_uris"`
	CreatedAt    Time           `db:"created_at"`
}

// Rights are what a person lets an application do. They become those of its key.
type Rights struct {
	Name      string     `json:"name"`
	Scopes    []string   `json:"scopes"`
	InboxIDs  []string   `json:"inbox_ids"`  // nil: all inboxes
	ExpiresAt *time.Time `json:"expires_at"` // nil: never
}

// Grant is the connection of an application that a person approved. It begins with an
// authorization code. When the application uses the code, the grant gets a key.
type Grant struct {
	Seq           int64        `db:"seq"`
	AccountID     int64        `db:"account_id"`
	ClientID      string       `db:"client_id"`
	RedirectURI   string       `db:"redirect_uri"`
	Resource      string       `db:"resource"`
	Challenge     string       `db:"challenge"`
	Rights        JSON[Rights] `db:"rights"`
	CodeHash      []byte       `db:"code_hash"`
	CodeExpiresAt Time         `db:"code_expires_at"`
	KeySeq        *int64       `db:"key_seq"` // nil until the code is used
	RefreshHash   []byte       `db:"refresh_hash"`
	RefreshEnds   *Time        `db:"refresh_expires_at"`
}

const grantColumns = `seq, account_id, client_id, redirect_uri, resource, challenge, rights, code_hash, code_expires_at,
	key_seq, refresh_hash, refresh_expires_at`

// Tokens are the hashes of an access token, and of the two parts of a refresh token:
// the family, which stays, and the part that is new each time.
type Tokens struct{ Access, Family, Refresh []byte }

// RegisterClient stores an application with a name and redirect URIs. Of those that no
// person has approved yet, it keeps the newest, and those younger than ClientGrace.
func (s *Store) RegisterClient(ctx context.Context, name string, redirectURIs []string) (OAuthClient, error) {
	const (
		old = `DELETE FROM oauth_clients WHERE approved_at IS NULL AND created_at <= $2 AND id NOT IN
			(SELECT id FROM oauth_clients WHERE approved_at IS NULL ORDER BY created_at DESC, id DESC LIMIT $1)`
		q = `INSERT INTO oauth_clients (id, name, redirect_uris, created_at) VALUES ($1, $2, $3, $4)`
	)
	now := s.now()
	c := OAuthClient{ID: NewID("app_", now), Name: name, RedirectURIs: JSON[[]string]{V: redirectURIs}, CreatedAt: NewTime(now)}
	return c, s.inTx(ctx, "register application", func(tx *sqlx.Tx) error {
		return execAll(ctx, tx, []statement{{old, []any{MaxWaitingClients - 1, NewTime(now.Add(-ClientGrace))}}, {q, []any{c.ID, c.Name, c.RedirectURIs, c.CreatedAt}}})
	})
}

// OAuthClient returns the application with an id.
func (s *Store) OAuthClient(ctx context.Context, id string) (OAuthClient, error) {
	const q = `SELECT id, name, redirect_uris, created_at FROM oauth_clients WHERE id = $1`
	return readOne[OAuthClient](ctx, s, "application", q, id)
}

// AddGrant stores what a person approved, with the hash of its authorization code. It
// returns ErrNotFound if the application is gone.
func (s *Store) AddGrant(ctx context.Context, g Grant) error {
	const (
		approve = `UPDATE oauth_clients SET approved_at = $2 WHERE id = $1`
		q       = `INSERT INTO oauth_grants (account_id, client_id, redirect_uri, resource, challenge, rights, code_hash, code_expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	)
	now := s.now()
	return s.inTx(ctx, "add grant", func(tx *sqlx.Tx) error {
		if err := oneRow("application", ErrNotFound)(tx.ExecContext(ctx, approve, g.ClientID, NewTime(now))); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, q, g.AccountID, g.ClientID, g.RedirectURI, g.Resource, g.Challenge, g.Rights, g.CodeHash, NewTime(now.Add(AuthorizationCodeTTL)))
		return err
	})
}

// UseCode gives the grant whose code has this hash the tokens and a key, and returns
// the key. k has the secret of the key; the rest comes from the grant. It returns
// ErrNotFound if the code is unknown or has expired, or check refuses the grant. A
// code works once: a refused one is gone, and a used one returns ErrReused.
func (s *Store) UseCode(ctx context.Context, code []byte, check func(Grant) bool, k Key, t Tokens) (Key, error) {
	const (
		q    = `SELECT ` + grantColumns + ` FROM oauth_grants WHERE code_hash = $1`
		drop = `DELETE FROM oauth_grants WHERE seq = $1`
		use  = `UPDATE oauth_grants SET key_seq = $2, family_hash = $3 WHERE seq = $1`
	)
	var refused error // of a transaction that commits
	out, err := transact(ctx, s, "authorization code", func(tx *sqlx.Tx) (out Key, err error) {
		refused = nil
		g, err := getOne[Grant](ctx, tx, q+s.engine.LockRow(), code)
		switch {
		case err != nil:
			return out, err
		case g.KeySeq != nil:
			refused = fmt.Errorf("authorization code: %w", ErrReused)
			return out, s.endGrant(ctx, tx, g)
		case !g.CodeExpiresAt.After(s.now()) || !check(g):
			refused = fmt.Errorf("authorization code: %w", ErrNotFound)
			_, err := tx.ExecContext(ctx, drop, g.Seq)
			return out, err
		}
		made, rights := k, g.Rights.V
		made.AccountID, made.Name, made.Mode, made.Scopes.V, made.AllowedIPs.V = g.AccountID, rights.Name, KeyRestricted, rights.Scopes, []string{}
		made.ExpiresAt = TimePtr(rights.ExpiresAt)
		if rights.InboxIDs != nil {
			made.InboxIDs = &JSON[[]string]{V: rights.InboxIDs}
		}
		if out, err = s.insertKey(ctx, tx, made); err == nil {
			_, err = tx.ExecContext(ctx, use, g.Seq, out.Seq, t.Family)
		}
		if err == nil {
			err = s.putTokens(ctx, tx, g.Seq, t)
		}
		return out, err
	})
	return out, cmp.Or(err, refused)
}

// putTokens replaces the tokens of a grant.
func (s *Store) putTokens(ctx context.Context, tx *sqlx.Tx, seq int64, t Tokens) error {
	const q = `UPDATE oauth_grants SET access_hash = $2, access_expires_at = $3, refresh_hash = $4, refresh_expires_at = $5 WHERE seq = $1`
	now := s.now()
	_, err := tx.ExecContext(ctx, q, seq, t.Access, NewTime(now.Add(AccessTokenTTL)), t.Refresh, NewTime(now.Add(RefreshTokenTTL)))
	return err
}

// RotateTokens replaces the tokens of the client's grant that has the refresh token
// used, and returns its key. It returns ErrNotFound if it finds none, or the grant
// has ended, and ErrReused if the refresh token was replaced before.
func (s *Store) RotateTokens(ctx context.Context, clientID string, used, next Tokens) (Key, error) {
	const (
		q   = `SELECT ` + grantColumns + ` FROM oauth_grants WHERE family_hash = $1 AND client_id = $2`
		key = `SELECT ` + keyColumns + ` FROM api_keys WHERE seq = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`
	)
	var reused error // of a transaction that commits
	k, err := transact(ctx, s, "refresh token", func(tx *sqlx.Tx) (k Key, err error) {
		reused = nil
		g, err := getOne[Grant](ctx, tx, q+s.engine.LockRow(), used.Family, clientID)
		if err != nil {
			return k, err
		}
		if !bytes.Equal(g.RefreshHash, used.Refresh) {
			reused = fmt.Errorf("refresh token: %w", ErrReused)
			return k, s.endGrant(ctx, tx, g)
		}
		now := s.now()
		if !g.RefreshEnds.After(now) {
			return k, ErrNotFound
		}
		if k, err = getOne[Key](ctx, tx, key, g.KeySeq, NewTime(now)); err == nil {
			err = s.putTokens(ctx, tx, g.Seq, next)
		}
		return k, err
	})
	return k, cmp.Or(err, reused)
}

// KeyByAccessToken returns the key of the grant whose access token for the resource has
// this hash. It returns ErrNotFound if there is none, the token has expired, or the key
// is revoked or expired.
func (s *Store) KeyByAccessToken(ctx context.Context, hash []byte, resource string) (Key, error) {
	const q = `SELECT ` + keyColumns + ` FROM api_keys
		WHERE seq = (SELECT key_seq FROM oauth_grants WHERE access_hash = $1 AND access_expires_at > $2 AND resource = $3)
		AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`
	return readOne[Key](ctx, s, "access token", q, hash, NewTime(s.now()), resource)
}

// RevokeGrant revokes the key of the client's grant that has the access token, or the
// family of the refresh token. It returns ErrNotFound if there is none.
func (s *Store) RevokeGrant(ctx context.Context, clientID string, t Tokens) error {
	const q = `SELECT ` + grantColumns + ` FROM oauth_grants WHERE (access_hash = $1 OR family_hash = $2) AND client_id = $3`
	return s.inTx(ctx, "token", func(tx *sqlx.Tx) error {
		g, err := getOne[Grant](ctx, tx, q+s.engine.LockRow(), t.Access, t.Family, clientID)
		if err == nil {
			err = s.endGrant(ctx, tx, g)
		}
		return err
	})
}

// endGrant revokes the key of a grant, if it has one that is not revoked, and deletes
// the grant, which is locked.
func (s *Store) endGrant(ctx context.Context, tx *sqlx.Tx, g Grant) error {
	ids, err := getAll[string](ctx, tx, `SELECT id FROM api_keys WHERE seq = $1 AND revoked_at IS NULL`, g.KeySeq)
	for _, id := range ids {
		if err := s.revokeKey(ctx, tx, g.AccountID, id); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM oauth_grants WHERE seq = $1`, g.Seq)
	}
	return err
}

// Application is a connected application: its key, and the redirect URI to which the
// person was sent back.
type Application struct {
	Key
	RedirectURI string `db:"redirect_uri"`
}

// Applications returns the connected applications of an account, newest first.
func (s *Store) Applications(ctx context.Context, accountID int64) ([]Application, error) {
	const q = `SELECT ` + keyColumns + `, (SELECT redirect_uri FROM oauth_grants WHERE key_seq = api_keys.seq) AS redirect_uri
		FROM api_keys WHERE account_id = $1 AND revoked_at IS NULL AND seq IN (SELECT key_seq FROM oauth_grants WHERE account_id = $1)
		ORDER BY seq DESC LIMIT $2`
	return readAll[Application](ctx, s, "connected applications", q, accountID, maxApplications)
}

// sweepGrants deletes some of the authorization codes that have expired and of the
// grants that have ended, and revokes the keys of these. Then it deletes applications
// that no person has approved for ClientWaitTTL, or that have had no grant for
// ClientTTL.
func (s *Store) sweepGrants(ctx context.Context) (int, error) {
	const (
		q = `SELECT ` + grantColumns + ` FROM oauth_grants
			WHERE key_seq IS NULL AND code_expires_at <= $1 OR refresh_expires_at <= $1
				OR key_seq IN (SELECT seq FROM api_keys WHERE revoked_at IS NOT NULL OR expires_at <= $1)
			ORDER BY seq LIMIT $2`
		clients = `DELETE FROM oauth_clients WHERE (approved_at IS NULL AND created_at <= $1 OR approved_at <= $2)
			AND NOT EXISTS (SELECT 1 FROM oauth_grants WHERE client_id = oauth_clients.id)`
	)
	now := s.now()
	ended, err := transact(ctx, s, "sweep grants", func(tx *sqlx.Tx) ([]Grant, error) {
		ended, err := getAll[Grant](ctx, tx, q+s.engine.SkipLocked(), NewTime(now), sweepBatch)
		for _, g := range ended {
			if err = s.endGrant(ctx, tx, g); err != nil {
				break
			}
		}
		return ended, err
	})
	if err != nil || len(ended) > 0 {
		return len(ended), err
	}
	return s.exec(ctx, "sweep applications", clients, NewTime(now.Add(-ClientWaitTTL)), NewTime(now.Add(-ClientTTL)))
}
