package s3blob

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/postroom/postroom/store"
)

const (
	// tries is the number of attempts for a request with transient failures.
	tries = 3
	// pause is the time before the second attempt. It doubles with each attempt.
	pause = 200 * time.Millisecond
	// maxDocument limits the XML documents of the storage: a page of 1,000 objects, or
	// an error.
	maxDocument = 4 << 20
)

// request is a request for an object, or for the bucket if object is empty.
type request struct {
	method, object string
	query          url.Values
	from           int64 // first byte to read
	body           io.Reader
	size           int64 // of body
}

// refusal is an error response of the storage.
type refusal struct {
	status  int
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
}

func (r *refusal) Error() string {
	return cmp.Or(r.Message, r.Code, http.StatusText(r.status), fmt.Sprintf("status %d", r.status))
}

// transient reports whether the same request may succeed a moment later.
func (r *refusal) transient() bool {
	switch r.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		499, 520: // of proxies that lost a side
		return true
	}
	return r.Code == "RequestTimeout"
}

// newTransport returns the connections to the storage. A response is never decompressed:
// its length is the length of the object. It speaks HTTP/1.1: a dead connection of HTTP/2
// would serve the next tries too.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // documented
	t.ResponseHeaderTimeout = responseTimeout
	t.MaxIdleConnsPerHost = 16
	t.DisableCompression = true
	t.ForceAttemptHTTP2, t.Protocols = false, new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}

// do sends a request and returns a response with a 2xx status. It repeats a request after
// a transient failure if its body can be read again.
func (b *Blobs) do(ctx context.Context, r request) (*http.Response, error) {
	seeker, again := r.body.(io.Seeker)
	again = again || r.body == nil
	for attempt := 1; ; attempt++ {
		res, err := b.try(ctx, r)
		if err == nil {
			return res, nil
		}
		no, refused := errors.AsType[*refusal](err)
		if attempt == tries || !again || ctx.Err() != nil || refused && !no.transient() {
			return nil, fault(err)
		}
		select {
		case <-time.After(pause << (attempt - 1)):
		case <-ctx.Done():
			return nil, fault(ctx.Err())
		}
		if seeker != nil {
			if _, err := seeker.Seek(0, io.SeekStart); err != nil {
				return nil, fault(err)
			}
		}
	}
}

func (b *Blobs) try(ctx context.Context, r request) (*http.Response, error) {
	var body io.ReadCloser
	sent := &sending{Reader: r.body, closed: make(chan struct{})}
	if r.body != nil {
		body = sent
	}
	req, err := http.NewRequestWithContext(ctx, r.method, b.url(b.cfg.Endpoint, r.object, r.query), body)
	if err != nil {
		return nil, err
	}
	if r.from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", r.from))
	}
	c := b.cfg.Credentials
	switch {
	case body == nil:
		req.Header.Set("X-Amz-Content-Sha256", emptySum)
		req = signer.SignV4(*req, c.AccessKey, c.SecretKey, c.SessionToken, b.cfg.Region)
	case req.URL.Scheme == "https": // which protects the body
		req.ContentLength = r.size
		req.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
		req = signer.SignV4(*req, c.AccessKey, c.SecretKey, c.SessionToken, b.cfg.Region)
	default: // each piece of the body has a signature of its own
		req.ContentLength = r.size
		req = signer.StreamingSignV4(req, c.AccessKey, c.SecretKey, c.SessionToken, b.cfg.Region, r.size, time.Now().UTC(), hasher{sha256.New()})
	}
	res, err := b.conns.RoundTrip(req)
	if err == nil {
		whole := r.from > 0 && res.StatusCode == http.StatusOK // a proxy has dropped the range
		if res.StatusCode/100 == 2 && !whole {
			return res, nil
		}
		no := &refusal{}
		_ = xml.NewDecoder(io.LimitReader(res.Body, maxDocument)).Decode(no) // the response may have no document
		no.status = res.StatusCode
		err = errors.Join(no, res.Body.Close())
	}
	if body != nil {
		<-sent.closed
	}
	return nil, err
}

// sending is a body that belongs to the caller. The transport may still read it after it
// returned an error, until it closes it.
type sending struct {
	io.Reader
	once   sync.Once
	closed chan struct{}
}

func (s *sending) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// url returns the URL of an object. Only storage whose host name can have the name of the
// bucket in front of it gets it there.
func (b *Blobs) url(server *url.URL, object string, query url.Values) string {
	u, bucket := *server, "/"+b.cfg.Bucket
	if s3utils.IsVirtualHostSupported(u, b.cfg.Bucket) {
		u.Host, bucket = b.cfg.Bucket+"."+u.Host, ""
	}
	return u.String() + bucket + "/" + s3utils.EncodePath(object) + "?" + s3utils.QueryEncode(query)
}

// done sends a request and drops its response.
func (b *Blobs) done(ctx context.Context, r request) error {
	res, err := b.do(ctx, r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxDocument))
	return fault(errors.Join(err, res.Body.Close()))
}

// objects is a page of the objects of a bucket.
type objects struct {
	Contents []struct {
		Key          string    `xml:"Key"`
		LastModified time.Time `xml:"LastModified"`
	} `xml:"Contents"`
	Encoding  string `xml:"EncodingType"` // of the keys
	Truncated bool   `xml:"IsTruncated"`
	Next      string `xml:"NextContinuationToken"`
}

// list requests a page of objects. XML has no form for the control characters that the
// keys of others may contain, so the storage is asked to encode keys.
func (b *Blobs) list(ctx context.Context, query url.Values, page *objects) error {
	res, err := b.do(ctx, request{method: http.MethodGet, query: query})
	if err != nil {
		return err
	}
	err = xml.NewDecoder(io.LimitReader(res.Body, maxDocument)).Decode(page)
	if page.Encoding == "url" {
		for i := range page.Contents {
			o := &page.Contents[i]
			if key, err := url.QueryUnescape(o.Key); err == nil {
				o.Key = key
			}
		}
	}
	if page.Truncated && page.Next == "" {
		err = errors.Join(err, errors.New("the storage lists no more than one page of objects"))
	}
	return fault(errors.Join(err, res.Body.Close()))
}

// emptySum is the SHA-256 of an empty body.
const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// hasher is a hash as the signer wants it.
type hasher struct{ hash.Hash }

func (hasher) Close() {}

// fault wraps an error of the storage in an error of package store.
func fault(err error) error {
	if err == nil {
		return nil
	}
	kind := store.ErrUnavailable
	if no, refused := errors.AsType[*refusal](err); refused {
		switch {
		case no.Code == "NoSuchKey" || no.status == http.StatusNotFound && no.Code == "":
			kind = store.ErrNotFound
		case no.status == http.StatusInsufficientStorage || strings.Contains(no.Code, "Quota") || strings.Contains(no.Code, "StorageFull"):
			kind = store.ErrFull
		}
	}
	return fmt.Errorf("blob storage: %w: %w", kind, err)
}
