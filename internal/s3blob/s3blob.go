// Package s3blob stores large raw messages in S3-compatible storage, one object
// per blob. Others may use the same bucket with another prefix.
//
// Messages are streamed and never held in memory as a whole. A blob exists once
// the storage has confirmed it; a message is not acknowledged before. If the
// storage fails, the error is store.ErrUnavailable, or store.ErrFull if it is
// full, and the sender is asked to retry later. Each key is written only once.
package s3blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/postroom/postroom/store"
)

const (
	// putTimeout limits the upload of one message, while its sender waits.
	putTimeout = 2 * time.Minute
	// responseTimeout limits the time to the first byte of a response.
	responseTimeout = 30 * time.Second
	// deleteTimeout limits one deletion.
	deleteTimeout = 30 * time.Second
)

// Blobs stores blobs in a bucket. It implements store.Blobs, store.BlobLinker
// and store.BlobRestorer.
type Blobs struct {
	cfg   Config
	conns *http.Transport
}

var (
	_ store.Blobs        = (*Blobs)(nil)
	_ store.BlobLinker   = (*Blobs)(nil)
	_ store.BlobRestorer = (*Blobs)(nil)
)

// Open checks that the bucket exists and returns it.
func Open(ctx context.Context, cfg Config) (*Blobs, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	b := &Blobs{cfg: cfg, conns: newTransport()}
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	err := b.done(ctx, request{method: http.MethodHead})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("bucket %s not found at %s", cfg.Bucket, cfg.Endpoint)
	case err != nil:
		return nil, fmt.Errorf("bucket %s at %s: %w", cfg.Bucket, cfg.Endpoint, err)
	}
	return b, nil
}

// object returns the object name of a blob.
func (b *Blobs) object(key string) string { return path.Join(b.cfg.Prefix, key) }

// Put uploads r in one request and returns its key.
func (b *Blobs) Put(ctx context.Context, r io.Reader, size int64) (string, error) {
	key := store.NewBlobKey(b.cfg.Now())
	if err := b.Restore(ctx, key, r, size); err != nil {
		return "", err
	}
	return key, nil
}

// Restore is Put with a given key.
func (b *Blobs) Restore(ctx context.Context, key string, r io.Reader, size int64) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	return b.done(ctx, request{method: http.MethodPut, object: b.object(key), body: r, size: size})
}

// Open requests the object at once, so that a missing object is an error.
func (b *Blobs) Open(ctx context.Context, key string) (io.ReadSeekCloser, error) {
	o := &object{ctx: ctx, blobs: b, name: b.object(key)}
	size, err := o.get(0)
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", key, err)
	}
	o.size = size
	return o, nil
}

// Delete deletes the object. A missing object is not an error.
func (b *Blobs) Delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	err := b.done(ctx, request{method: http.MethodDelete, object: b.object(key)})
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Each calls f for the objects under the prefix last modified before the given
// time. It skips objects that are not blobs.
func (b *Blobs) Each(ctx context.Context, before time.Time, f func(key string) error) error {
	prefix := b.cfg.Prefix
	if prefix != "" {
		prefix += "/"
	}
	query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {prefix}}
	for {
		var page objects
		if err := b.list(ctx, query, &page); err != nil {
			return err
		}
		for _, o := range page.Contents {
			key := strings.TrimPrefix(o.Key, prefix)
			if !store.IsBlobKey(key) || !o.LastModified.Before(before) {
				continue
			}
			if err := f(key); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return ctx.Err()
		}
		query.Set("continuation-token", page.Next)
	}
}

// Link returns a signed URL of the object, valid for ttl. Browsers save it as
// a file, whatever its media type.
func (b *Blobs) Link(ctx context.Context, key, name string, ttl time.Duration) (string, error) {
	if b.cfg.Links == nil {
		return "", nil
	}
	headers := url.Values{
		"response-content-disposition": {mime.FormatMediaType("attachment", map[string]string{"filename": name})},
		"response-content-type":        {"application/octet-stream"},
		"response-cache-control":       {"private, no-store"},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url(b.cfg.Links, b.object(key), headers), nil)
	if err != nil {
		return "", fmt.Errorf("sign a link: %w", err)
	}
	c := b.cfg.Credentials
	return signer.PreSignV4(*req, c.AccessKey, c.SecretKey, c.SessionToken, b.cfg.Region, int64(ttl.Seconds())).URL.String(), nil
}

// Close closes idle connections.
func (b *Blobs) Close() error {
	b.conns.CloseIdleConnections()
	return nil
}
