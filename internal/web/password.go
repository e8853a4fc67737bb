package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/postroom/postroom/store"
)

// Cost of hashing a password (Argon2id, RFC 9106): memory in KiB, passes, and
// lanes. A hash records its own parameters.
const (
	hashMemory = 64 << 10
	hashPasses = 2
	hashLanes  = 1
	hashBytes  = 32
	saltBytes  = 16
	// maxHashing bounds the memory, in KiB, of concurrent hashing. Further
	// requests wait up to hashPatience.
	maxHashing   = 2 * hashMemory
	hashPatience = 5 * time.Second
)

// Bounds on the length of a password, in characters.
const (
	shortestPassword = 12
	longestPassword  = 200
)

// errBusy means that too many passwords are being hashed.
var errBusy = &failure{503, "Too many sign-ins right now", "Try again in a moment."}

// hashPassword returns the encoded hash of a password.
func (d *Dashboard) hashPassword(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // crypto/rand never fails
	sum, err := d.argon2(ctx, password, salt, hashPasses, hashMemory)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashPasses, hashLanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum)), nil
}

// isPassword reports whether password belongs to the user. It takes the same time
// for users without a password, so that timing does not reveal which users exist.
func (d *Dashboard) isPassword(ctx context.Context, u store.User, password string) (bool, error) {
	if u.Password == nil {
		_, err := d.argon2(ctx, password, make([]byte, saltBytes), hashPasses, hashMemory)
		return false, err
	}
	passes, memory, salt, want, err := parseHash(*u.Password)
	if err != nil {
		return false, err
	}
	got, err := d.argon2(ctx, password, salt, passes, memory)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
}

// argon2 waits for free memory and returns the hash.
func (d *Dashboard) argon2(ctx context.Context, password string, salt []byte, passes, memory uint32) ([]byte, error) {
	patient, cancel := context.WithTimeout(ctx, hashPatience)
	defer cancel()
	if err := d.hashing.Acquire(patient, int64(memory)); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errBusy
	}
	defer d.hashing.Release(int64(memory))
	return argon2.IDKey([]byte(password), salt, passes, memory, hashLanes, hashBytes), nil
}

// parseHash parses the result of hashPassword.
func parseHash(s string) (passes, memory uint32, salt, sum []byte, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return 0, 0, nil, nil, errors.New("stored password is not an Argon2id hash")
	}
	var lanes int
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &lanes); err != nil || lanes != hashLanes ||
		passes < 1 || memory < 8 || memory > maxHashing {
		return 0, 0, nil, nil, errors.New("stored password hash has unsupported parameters")
	}
	if salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err == nil {
		sum, err = base64.RawStdEncoding.DecodeString(parts[5])
	}
	if err != nil || len(sum) != hashBytes {
		return 0, 0, nil, nil, errors.New("stored password hash is malformed")
	}
	return passes, memory, salt, sum, nil
}

// newPassword returns the hash of the new password of a form, which has it twice. The error
// may be the problem of a field.
func (p *page) newPassword() (string, error) {
	password := p.form.Get("password")
	switch n := utf8.RuneCountInString(password); {
	case n < shortestPassword:
		return "", fieldProblem("password", fmt.Sprintf("Use at least %d characters.", shortestPassword))
	case n > longestPassword:
		return "", fieldProblem("password", fmt.Sprintf("Use at most %d characters.", longestPassword))
	case password != p.form.Get("again"):
		return "", fieldProblem("again", "The passwords do not match.")
	}
	return p.d.hashPassword(p.ctx(), password)
}
