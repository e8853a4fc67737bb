package main

import (
	"context"
	"time"

	"github.com/postroom/postroom/internal/s3blob"
	"github.com/postroom/postroom/store"
)

// useBucket reads the credentials of the bucket, when there is one, from the
// variables that all AWS tools share.
func (c *Config) useBucket(faults *faultList, given, vars map[string]string) {
	if !c.Blobs.bucket() {
		return
	}
	bucket, err := s3blob.Parse(string(c.Blobs))
	if err != nil {
		return // said already
	}
	if bucket.Credentials, err = s3blob.Environment(vars); err != nil {
		faults.add("%s names a bucket: %v", given["Blobs"], err)
	}
	c.bucket = &bucket
}

// openBlobs opens what keeps large mail.
func (c Config) openBlobs(ctx context.Context, now func() time.Time) (store.Blobs, error) {
	if c.bucket == nil {
		return store.OpenBlobFolder(string(c.Blobs), now)
	}
	bucket := *c.bucket
	bucket.Now = now
	return s3blob.Open(ctx, bucket)
}
