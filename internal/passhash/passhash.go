// Package passhash hashes passwords with Argon2id (RFC 9106). It bounds the memory of
// concurrent hashing, because anyone may try to sign in.
package passhash

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/sync/semaphore"
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

// ErrBusy means that too many passwords are being hashed.
var ErrBusy = errors.New("too many passwords are being hashed")

// Hasher hashes passwords. It is safe for concurrent use.
type Hasher struct{ memory *semaphore.Weighted }

// New returns a Hasher.
func New() *Hasher { return &Hasher{semaphore.NewWeighted(maxHashing)} }

// Hash returns the encoded hash of a password. It returns ErrBusy if it cannot start soon.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // crypto/rand never fails
	sum, err := h.argon2(ctx, password, salt, hashPasses, hashMemory)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashPasses, hashLanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum)), nil
}

// Matches reports whether a password has this hash. Without a hash it takes the same time, so
// that timing does not reveal which users exist. It returns ErrBusy if it cannot start soon.
func (h *Hasher) Matches(ctx context.Context, hash *string, password string) (bool, error) {
	if hash == nil {
		_, err := h.argon2(ctx, password, make([]byte, saltBytes), hashPasses, hashMemory)
		return false, err
	}
	passes, memory, salt, want, err := parse(*hash)
	if err != nil {
		return false, err
	}
	got, err := h.argon2(ctx, password, salt, passes, memory)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
}

// argon2 waits for free memory and returns the hash.
func (h *Hasher) argon2(ctx context.Context, password string, salt []byte, passes, memory uint32) ([]byte, error) {
	patient, cancel := context.WithTimeout(ctx, hashPatience)
	defer cancel()
	if err := h.memory.Acquire(patient, int64(memory)); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, ErrBusy
	}
	defer h.memory.Release(int64(memory))
	return argon2.IDKey([]byte(password), salt, passes, memory, hashLanes, hashBytes), nil
}

// parse parses the result of Hash.
func parse(s string) (passes, memory uint32, salt, sum []byte, err error) {
	const form = "$argon2id$v=%d$m=%d,t=%d,p=%d$%s"
	var version, lanes int
	var rest string
	_, err = fmt.Sscanf(s, form, &version, &memory, &passes, &lanes, &rest)
	if err != nil || version != argon2.Version || lanes != hashLanes || passes < 1 || memory < 8 || memory > maxHashing {
		return 0, 0, nil, nil, errors.New("stored password is not an Argon2id hash with supported parameters")
	}
	first, second, _ := strings.Cut(rest, "$")
	if salt, err = base64.RawStdEncoding.DecodeString(first); err == nil {
		sum, err = base64.RawStdEncoding.DecodeString(second)
	}
	if err != nil || len(sum) != hashBytes {
		return 0, 0, nil, nil, errors.New("stored password hash is malformed")
	}
	return passes, memory, salt, sum, nil
}
