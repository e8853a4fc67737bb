//go:build clients

package handlers_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/s3blob"
	"github.com/postroom/postroom/internal/s3test"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// TestRetentionInABucket runs the tests of retention with the blobs in S3-compatible
// storage, which keeps its objects in a folder.
func TestRetentionInABucket(t *testing.T) {
	t.Run("expired messages", TestExpiredMessages)
	t.Run("retention leaves nothing", TestRetentionLeavesNothing)
	t.Run("deleted inbox", TestDeletedInboxLeavesNothing)
	t.Run("expired inbox", TestExpiredInboxKeepsItsMail)
}

func eachRetained(t *testing.T, test func(t *testing.T, s retained)) {
	t.Helper()
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		s3 := s3test.Start(t)
		clock := newFileClock()
		test(t, newRetained(t, storetest.SQLite, s3.Dir, clock, storetest.WithStorage(bucket(t, s3, clock))))
	})
}

// bucket opens the bucket of a server. clock provides the dates in keys.
func bucket(t *testing.T, s3 *s3test.Server, clock *storetest.Clock, more ...string) store.Blobs {
	t.Helper()
	cfg, err := s3blob.Parse(s3.Address(more...))
	must(t, err)
	cfg.Credentials = s3blob.Credentials{AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey}
	cfg.Now = clock.Now
	b, err := s3blob.Open(t.Context(), cfg)
	must(t, err)
	return b
}

// The raw form of a large message comes from the bucket itself, if the
// installation says that clients can reach it. Other files come from us, unless
// links are off.
func TestRawLinkOfABucket(t *testing.T) {
	t.Parallel()
	s3 := s3test.Start(t)
	clock := newFileClock()
	with := newRetained(t, storetest.SQLite, s3.Dir, clock, storetest.WithStorage(bucket(t, s3, clock, "links="+s3.Endpoint))).server
	in := with.newInbox(t)
	large, small := with.receive(t, in, marked(store.RawInRow)), with.receive(t, in, marked(10))
	off := newServer(t, with.store, with.clock, func(c *handlers.Config) { c.NoFiles = true })
	off.account = with.account
	off.key = off.newKey(t)
	for name, s := range map[string]*server{"links on": with, "links off": off} {
		link := s.do(t, http.MethodGet, "/v1/messages/"+large.ID+"/raw", "").want(t, http.StatusFound).header.Get("Location")
		if !strings.HasPrefix(link, s3.Endpoint+"/"+s3.Bucket+"/"+*large.Content.BlobKey+"?") || !strings.Contains(link, "X-Amz-Expires=900") {
			t.Errorf("%s: link %s", name, link)
		}
		res, err := http.Get(link)
		must(t, err)
		body, err := io.ReadAll(res.Body)
		if err != nil || res.Body.Close() != nil {
			t.Fatal(err)
		}
		if want := `attachment; filename=` + large.ID + `.eml`; res.Header.Get("Content-Disposition") != want || int64(len(body)) != large.Size {
			t.Errorf("%s: %s, %d bytes of %d", res.Status, res.Header, len(body), large.Size)
		}
	}
	with.do(t, http.MethodGet, with.rawLink(t, small), "", as("")).want(t, http.StatusOK)
	att := "/v1/messages/" + large.ID + "/attachments/" + large.Content.Attachments.V[0].ID
	link := with.linked(t, with.do(t, http.MethodGet, att, "").want(t, http.StatusOK).str(t, "download_url"))
	if got := with.do(t, http.MethodGet, link, "", as("")).want(t, http.StatusOK); int64(len(got.body)) != large.Content.Attachments.V[0].Size {
		t.Errorf("%d bytes of %d", len(got.body), large.Content.Attachments.V[0].Size)
	}
	part := with.do(t, http.MethodGet, link, "", as(""), func(r *http.Request) *http.Request { r.Header.Set("Range", "bytes=-5"); return r })
	if part.want(t, http.StatusPartialContent); string(part.body) != mark[len(mark)-3:]+"\r\n" {
		t.Errorf("the end is %q", part.body)
	}
	off.do(t, http.MethodGet, "/v1/messages/"+small.ID+"/raw", "").wantError(t, http.StatusNotFound, "not_found")
	off.do(t, http.MethodGet, att, "").wantError(t, http.StatusNotFound, "not_found")
}
