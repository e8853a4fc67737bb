package handlers

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	stdmime "mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

// linkTTL is the lifetime of a download link.
const linkTTL = 15 * time.Minute

var (
	errLinkInvalid = &httpapi.Error{Status: http.StatusForbidden, Code: gen.ErrorCodeLinkInvalid, Message: "this link is invalid or has expired"}
	errNoFiles     = &httpapi.Error{Status: http.StatusNotFound, Code: gen.ErrorCodeNotFound, Message: "download links are not available on this installation"}
)

// file identifies the target of a download link: the raw message, or one
// attachment of a message or draft.
type file struct {
	accountID    int64
	ownerID      string // msg_ or drf_
	attachmentID string // empty: the raw message
	expires      time.Time
}

// fileSigner creates and reads the tokens of download links. A token is the
// credential: it permits downloading that one file until it expires.
type fileSigner struct{ key []byte }

const fileMAC = sha256.Size

func (s fileSigner) token(f file) string {
	body := strings.Join([]string{
		"f1", strconv.FormatInt(f.accountID, 36), f.ownerID, f.attachmentID, strconv.FormatInt(f.expires.Unix(), 36),
	}, "/")
	return base64.RawURLEncoding.EncodeToString(append(s.mac(body), body...))
}

func (s fileSigner) mac(body string) []byte {
	m := hmac.New(sha256.New, s.key)
	_, _ = io.WriteString(m, body) // a hash never fails
	return m.Sum(nil)
}

// read returns what the token is for, or errLinkInvalid.
func (s fileSigner) read(token string, now time.Time) (file, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < fileMAC || !hmac.Equal(b[:fileMAC], s.mac(string(b[fileMAC:]))) {
		return file{}, errLinkInvalid
	}
	p := strings.Split(string(b[fileMAC:]), "/")
	if len(p) != 5 || p[0] != "f1" {
		return file{}, errLinkInvalid
	}
	account, err1 := strconv.ParseInt(p[1], 36, 64)
	expires, err2 := strconv.ParseInt(p[4], 36, 64)
	if err1 != nil || err2 != nil || !now.Before(time.Unix(expires, 0)) {
		return file{}, errLinkInvalid
	}
	return file{account, p[2], p[3], time.Unix(expires, 0)}, nil
}

// link returns the URL of a file of a message or draft and its expiry.
func (a *API) link(ctx context.Context, accountID int64, ownerID, attachmentID string) (url.URL, time.Time, error) {
	if a.cfg.NoFiles {
		return url.URL{}, time.Time{}, errNoFiles
	}
	f := file{accountID, ownerID, attachmentID, a.now().Add(linkTTL).Truncate(time.Second)}
	base := *a.cfg.BaseURL
	if !httpapi.IsPerson(httpapi.Caller(ctx)) { // the dashboard follows its links itself
		base.Host = cmp.Or(httpapi.SpecialOf(ctx).CalledHost, base.Host)
	}
	return *base.JoinPath("v1", "files", a.files.token(f)), f.expires, nil
}

// rawLink returns the URL of a raw message, either in the blob storage or at
// this API.
func (a *API) rawLink(ctx context.Context, m store.Message) (url.URL, error) {
	if m.Content != nil {
		direct, err := a.store.BlobLink(ctx, *m.Content, rawName(m), linkTTL)
		if err != nil {
			return url.URL{}, err
		}
		if direct != "" {
			u, err := url.Parse(direct)
			if err != nil {
				return url.URL{}, fmt.Errorf("link of the blob storage: %w", err)
			}
			return *u, nil
		}
	}
	link, _, err := a.link(ctx, m.AccountID, m.ID, "")
	return link, err
}

func rawName(m store.Message) string { return m.ID + ".eml" }

// GetMessageRaw implements GET /v1/messages/{message_id}/raw.
func (a *API) GetMessageRaw(ctx context.Context, p gen.GetMessageRawParams) (*gen.GetMessageRawFound, error) {
	m, err := a.keptMessage(ctx, p.MessageID)
	if err != nil {
		return nil, err
	}
	link, err := a.rawLink(ctx, m)
	if err != nil {
		return nil, err
	}
	return &gen.GetMessageRawFound{Location: link}, nil
}

// GetAttachment implements GET /v1/messages/{message_id}/attachments/{attachment_id}.
func (a *API) GetAttachment(ctx context.Context, p gen.GetAttachmentParams) (*gen.AttachmentDownload, error) {
	m, err := a.keptMessage(ctx, p.MessageID)
	if err != nil {
		return nil, err
	}
	at, err := attachmentOf(m, p.AttachmentID)
	if err != nil {
		return nil, err
	}
	v := attachmentToAPI(at)
	link, expires, err := a.link(ctx, m.AccountID, m.ID, at.ID)
	if err != nil {
		return nil, err
	}
	return &gen.AttachmentDownload{
		ID: v.ID, Filename: v.Filename, ContentType: v.ContentType, Size: v.Size, Inline: v.Inline, ContentID: v.ContentID,
		Object: "attachment", MessageID: m.ID, DownloadURL: link, ExpiresAt: expires,
	}, nil
}

func attachmentOf(m store.Message, id string) (at mail.Attachment, err error) {
	if m.Content == nil {
		return at, errNoAttachment
	}
	at, _, err = findAttachment(m.Content.Attachments.V, id)
	return at, err
}

// findAttachment returns the attachment and its index.
func findAttachment(all []mail.Attachment, id string) (mail.Attachment, int, error) {
	i := slices.IndexFunc(all, func(at mail.Attachment) bool { return at.ID == id })
	if i < 0 {
		return mail.Attachment{}, i, errNoAttachment
	}
	return all[i], i, nil
}

var errNoAttachment = fmt.Errorf("attachment: %w", store.ErrNotFound)

// DownloadFile implements GET /v1/files/{token}.
func (a *API) DownloadFile(ctx context.Context, p gen.DownloadFileParams, w http.ResponseWriter) error {
	if err := a.LimitAddress(ctx); err != nil {
		return err
	}
	if a.cfg.NoFiles {
		return errNoFiles
	}
	f, err := a.files.read(p.Token, a.now())
	if err != nil {
		return err
	}
	content, name, err := a.openFile(ctx, f)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", disposition(name))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox")
	h.Set("Cache-Control", "private, no-store")
	r := httpapi.Request(ctx).Clone(ctx)
	if ranges := r.Header.Get("Range"); !strings.HasPrefix(ranges, "bytes=") || strings.Contains(ranges, ",") {
		r.Header.Del("Range") // another unit, or several ranges: the whole file (RFC 9110 section 14.2)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(linkTTL)) // not all connections support deadlines, in tests
	response := &plainErrors{ResponseWriter: w}
	http.ServeContent(response, r, "", time.Time{}, content)
	if response.held == http.StatusRequestedRangeNotSatisfiable {
		h.Del("Content-Disposition")
		return &httpapi.Error{Status: response.held, Code: gen.ErrorCodeInvalidRequest, Param: "Range", Message: "the range lies outside the file"}
	}
	return response.fault()
}

// openFile opens the target of a token. It fails if the content has been
// deleted.
func (a *API) openFile(ctx context.Context, f file) (io.ReadSeekCloser, string, error) {
	if strings.HasPrefix(f.ownerID, "drf_") {
		return a.openDraftFile(ctx, f)
	}
	m, err := a.store.Message(ctx, f.accountID, f.ownerID)
	if err != nil {
		return nil, "", err
	}
	if m.ExpiredAt != nil {
		return nil, "", fmt.Errorf("content of %s: %w", m.ID, store.ErrNotFound)
	}
	if f.attachmentID == "" {
		raw, err := a.store.Raw(ctx, m.Seq)
		if err != nil {
			return nil, "", err
		}
		return signedRaw(raw), rawName(m), nil
	}
	at, err := attachmentOf(m, f.attachmentID)
	if err != nil {
		return nil, "", err
	}
	open := func() (io.ReadCloser, error) { return a.openPart(ctx, m.Seq, at.Part) }
	return &reopeningReader{open: open, size: at.Size}, attachmentName(at), nil
}

// openPart opens the decoded content of one part of a stored message.
func (a *API) openPart(ctx context.Context, messageSeq int64, part int) (io.ReadCloser, error) {
	raw, err := a.store.Raw(ctx, messageSeq)
	if err != nil {
		return nil, err
	}
	r, err := mime.OpenPart(raw, part, mail.DefaultLimits())
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return readCloser{r, raw}, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// disposition returns a Content-Disposition header (RFC 6266): a plain name for
// old clients and, if that differs, the real name as in RFC 8187.
func disposition(name string) string {
	if name == "" {
		return "attachment"
	}
	plain := plainName(name)
	header := stdmime.FormatMediaType("attachment", map[string]string{"filename": plain})
	if plain == name {
		return header
	}
	return header + "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// plainName replaces each character that clients read differently with an
// underscore: non-ASCII characters, quotes, backslashes, and the percent sign,
// which some decode.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f || strings.ContainsRune(`"\%`, r) {
			return '_'
		}
		return r
	}, name)
}

var errSeek = errors.New("seek outside the file")

// reopeningReader adds seeking to a stream. It reopens the stream to go back.
type reopeningReader struct {
	open func() (io.ReadCloser, error)
	size int64

	want int64 // offset of the next read
	at   int64 // offset of r
	r    io.ReadCloser
}

// Seek implements io.Seeker.
func (s *reopeningReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.want
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, errSeek
	}
	s.want = offset
	return offset, nil
}

// Read implements io.Reader.
func (s *reopeningReader) Read(p []byte) (int, error) {
	if s.r == nil || s.at > s.want {
		if err := s.reopen(); err != nil {
			return 0, err
		}
	}
	if s.at < s.want {
		n, err := io.CopyN(io.Discard, s.r, s.want-s.at)
		s.at += n
		if err != nil {
			return 0, err
		}
	}
	n, err := s.r.Read(p)
	s.at += int64(n)
	s.want = s.at
	return n, err
}

func (s *reopeningReader) reopen() error {
	if err := s.Close(); err != nil {
		return err
	}
	r, err := s.open()
	if err != nil {
		return err
	}
	s.r, s.at = r, 0
	return nil
}

// Close implements io.Closer.
func (s *reopeningReader) Close() error {
	if s.r == nil {
		return nil
	}
	r := s.r
	s.r = nil
	return r.Close()
}

// signedRaw returns a raw message with the signature header fields in front:
// the bytes as sent.
func signedRaw(raw *store.Raw) io.ReadSeekCloser {
	if raw.Signature == "" {
		return raw
	}
	return &reopeningReader{
		size: int64(len(raw.Signature)) + raw.Size,
		open: func() (io.ReadCloser, error) {
			if _, err := raw.Seek(0, io.SeekStart); err != nil {
				return nil, fmt.Errorf("read raw message: %w", err)
			}
			return io.NopCloser(io.MultiReader(strings.NewReader(raw.Signature), raw)), nil
		},
	}
}
