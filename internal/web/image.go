package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

const (
	// imageTTL is the lifetime of an image URL. The URL also expires with the
	// session.
	imageTTL = time.Hour
	// maxImage is the maximum size of an image in bytes.
	maxImage = 4 << 20
)

// imageLink returns the URL of an image that is attached to a message. It is valid for
// this session and for imageTTL. The document that shows the image has an opaque origin and
// its requests carry no cookie, so the URL names the session and is signed.
func (p *page) imageLink(mail, attachment string) string {
	address := fmt.Sprintf("/mail-images/%s/%s?s=%x&e=%d", url.PathEscape(mail), url.PathEscape(attachment), p.session(), p.d.now().Add(imageTTL).Unix())
	return address + "&k=" + p.d.sign("image "+address)
}

// sign signs a value for use in a URL. Each use has its own prefix.
func (d *Dashboard) sign(what string) string {
	m := hmac.New(sha256.New, d.cfg.NoticeKey)
	_, _ = fmt.Fprintf(m, "address %s", what) // hash.Hash never returns an error
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func (p *page) signedAs(signature, what string) bool {
	return hmac.Equal([]byte(signature), []byte(p.d.sign(what)))
}

// mailImage serves an image of a message.
func (d *Dashboard) mailImage(p *page) error {
	h := p.w.Header()
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // the document that shows it has an opaque origin
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	address, signature, _ := strings.Cut(p.r.URL.RequestURI(), "&k=")
	q := p.r.URL.Query()
	expires, err := strconv.ParseInt(q.Get("e"), 10, 64)
	session, wrong := hex.DecodeString(q.Get("s"))
	if err != nil || wrong != nil || !p.signedAs(signature, "image "+address) || d.now().Unix() >= expires {
		return errNoImage
	}
	u, err := d.store.SessionUser(p.ctx(), session)
	if errors.Is(err, store.ErrNotFound) {
		return errNoImage
	}
	if err != nil {
		return err
	}
	ctx := httpapi.AsPerson(p.ctx(), d.person(p.r, u, session))
	body, err := d.readImage(ctx, p.id(), p.r.PathValue("attachment"))
	if err != nil {
		d.log.DebugContext(ctx, "read image of a message failed", "error", err)
		if errors.Is(err, store.ErrUnavailable) {
			return err
		}
		return errNoImage
	}
	kind := http.DetectContentType(body)
	if !rasterImages[kind] {
		return errNoImage
	}
	h.Set("Content-Type", kind)
	_, _ = p.w.Write(body) // the client may have disconnected
	return nil
}

// rasterImages are the types of images that the dashboard serves. They contain no
// script.
var rasterImages = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// errNoImage is the response for every image that cannot be shown. It does not
// reveal the reason.
var errNoImage = &failure{http.StatusNotFound, "Image not found", "The image is no longer available or cannot be shown."}

// readImage reads an image that is attached to the message.
func (d *Dashboard) readImage(ctx context.Context, mail, attachment string) ([]byte, error) {
	at, err := d.attachment(ctx, mail, attachment)
	if err != nil {
		return nil, err
	}
	if at.Size > maxImage {
		return nil, errNoImage
	}
	file, err := d.openFile(ctx, at.DownloadURL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it is in memory
	return io.ReadAll(file)
}

// openFile opens the file of a download link. The caller closes it.
func (d *Dashboard) openFile(ctx context.Context, link url.URL) (io.ReadCloser, error) {
	res, err := d.api.DownloadFile(ctx, gen.DownloadFileParams{Token: path.Base(link.Path)})
	if err != nil {
		return nil, err
	}
	file, ok := res.(*gen.DownloadFileOKRawApplicationOctetStream)
	if !ok {
		return nil, fmt.Errorf("download: %T", res)
	}
	return file.Response.Body, nil
}
