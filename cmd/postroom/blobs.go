package main

import (
	"context"
	"time"

	"github.com/postroom/postroom/internal/s3blob"
	"github.com/postroom/postroom/store"
)

// useBucket reads the credentials of the bucket, if one is configured, from the
// standard AWS variables.
func (c *Config) useBucket(faults *faultList, given, vars map[string]string) {
	if !c.Blobs.bucket() {
		return
	}
	bucket, err := s3blob.Parse(string(c.Blobs))
	if err != nil {
		return // already reported
	}
	if bucket.Credentials, err = s3blob.Environment(vars); err != nil {
		faults.add("%s names a bucket: %v", given["Blobs"], err)
	}
	c.bucket = &bucket
}

// openBlobs opens the blob storage.
func (c Config) openBlobs(ctx context.Context, now func() time.Time) (store.Blobs, error) {
	if c.bucket == nil {
		return store.OpenBlobFolder(string(c.Blobs), now)
	}
	bucket := *c.bucket
	bucket.Now = now
	return s3blob.Open(ctx, bucket)
}
