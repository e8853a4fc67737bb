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

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/postroom/postroom/store"
)

const (
	// putTimeout limits the upload of one message, while its sender waits.
	putTimeout = 2 * time.Minute
	// responseTimeout limits the time to the first byte of a response.
	responseTimeout = 30 * time.Second
	// deleteTimeout limits one deletion.
	deleteTimeout = 30 * time.Second
	// tries is the number of attempts for a request with transient failures.
	tries = 3
)

// Blobs stores blobs in a bucket. It implements store.Blobs, store.BlobLinker
// and store.BlobRestorer.
type Blobs struct {
	cfg    Config
	server minio.Core
	links  *minio.Client // only signs links; nil without Config.Links
	conns  *http.Transport
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
	conns, err := minio.DefaultTransport(cfg.Endpoint.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", cfg.Endpoint, err)
	}
	conns.ResponseHeaderTimeout = responseTimeout
	server, err := newClient(cfg, cfg.Endpoint, conns)
	if err != nil {
		return nil, err
	}
	b := &Blobs{cfg: cfg, server: minio.Core{Client: server}, conns: conns}
	if cfg.Links != nil {
		if b.links, err = newClient(cfg, cfg.Links, conns); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	there, err := server.BucketExists(ctx, cfg.Bucket)
	switch {
	case err != nil:
		return nil, fmt.Errorf("bucket %s at %s: %w", cfg.Bucket, cfg.Endpoint, fault(err))
	case !there:
		return nil, fmt.Errorf("bucket %s not found at %s", cfg.Bucket, cfg.Endpoint)
	}
	return b, nil
}

func newClient(cfg Config, at *url.URL, conns *http.Transport) (*minio.Client, error) {
	c := cfg.Credentials
	client, err := minio.New(at.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(c.AccessKey, c.SecretKey, c.SessionToken),
		Secure: at.Scheme == "https", Transport: conns, Region: cfg.Region, MaxRetries: tries,
	})
	if err != nil {
		return nil, fmt.Errorf("use %s: %w", at, err)
	}
	return client, nil
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
	sent, err := b.server.Client.PutObject(ctx, b.cfg.Bucket, b.object(key), r, size, minio.PutObjectOptions{DisableMultipart: true})
	if err != nil {
		return fault(err)
	}
	if sent.Size != size {
		return fault(fmt.Errorf("%d bytes stored instead of %d: %w", sent.Size, size, io.ErrUnexpectedEOF))
	}
	return nil
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
	err := b.server.RemoveObject(ctx, b.cfg.Bucket, b.object(key), minio.RemoveObjectOptions{})
	if err = fault(err); errors.Is(err, store.ErrNotFound) {
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
	opts := minio.ListObjectsOptions{Prefix: prefix, Recursive: true}
	for o := range b.server.ListObjectsIter(ctx, b.cfg.Bucket, opts) {
		if o.Err != nil {
			return fault(o.Err)
		}
		key := strings.TrimPrefix(o.Key, prefix)
		if !store.IsBlobKey(key) || !o.LastModified.Before(before) {
			continue
		}
		if err := f(key); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Link returns a signed URL of the object, valid for ttl. Browsers save it as
// a file, whatever its media type.
func (b *Blobs) Link(ctx context.Context, key, name string, ttl time.Duration) (string, error) {
	if b.links == nil {
		return "", nil
	}
	headers := url.Values{
		"response-content-disposition": {mime.FormatMediaType("attachment", map[string]string{"filename": name})},
		"response-content-type":        {"application/octet-stream"},
		"response-cache-control":       {"private, no-store"},
	}
	u, err := b.links.PresignedGetObject(ctx, b.cfg.Bucket, b.object(key), ttl, headers)
	if err != nil {
		return "", fmt.Errorf("sign a link: %w", fault(err))
	}
	return u.String(), nil
}

// Close closes idle connections.
func (b *Blobs) Close() error {
	b.conns.CloseIdleConnections()
	return nil
}

// fault wraps an error of the storage in an error of package store.
func fault(err error) error {
	if err == nil {
		return nil
	}
	kind := store.ErrUnavailable
	switch response := minio.ToErrorResponse(err); {
	case response.Code == minio.NoSuchKey || response.StatusCode == http.StatusNotFound && response.Code == "NotFound":
		kind = store.ErrNotFound
	case response.StatusCode == http.StatusInsufficientStorage || strings.Contains(response.Code, "Quota") || strings.Contains(response.Code, "StorageFull"):
		kind = store.ErrFull
	}
	return fmt.Errorf("blob storage: %w: %w", kind, err)
}
