package approval

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// LinkPath is the path of the page that a link opens. The token follows.
const LinkPath = "/approve/"

// linkTTL is how long a link works.
const linkTTL = 24 * time.Hour

// minKey is the minimum length of the key of Links in bytes.
const minKey = 32

// Link is the content of a link: one version of a draft, and who may decide about it.
type Link struct {
	AccountID int64  `json:"a"`
	DraftID   string `json:"d"`
	Version   int    `json:"v"`
	Approver  string `json:"e"` // email address
	Expires   int64  `json:"x"` // Unix time
}

// Links creates and reads links. The token in a link is the only credential, so a link
// goes to its approver alone.
type Links struct {
	key       []byte
	base      *url.URL
	approvers []string
}

// NewLinks returns Links with a secret key of at least 32 bytes, which all nodes share,
// below a base URL. Links of people who are no longer approvers do not work.
func NewLinks(key []byte, base *url.URL, approvers []string) (*Links, error) {
	if len(key) < minKey {
		return nil, errors.New("approval: the key is shorter than 32 bytes")
	}
	return &Links{key, base, approvers}, nil
}

// URL returns the address of the page for a link.
func (l *Links) URL(link Link) string {
	body, err := json.Marshal(link)
	if err != nil {
		return "" // a Link always has JSON
	}
	return l.base.JoinPath(LinkPath, base64.RawURLEncoding.EncodeToString(append(l.mac(body), body...))).String()
}

// Read returns the link with a token. ok is false if the token is invalid or has
// expired, or if its approver no longer is one.
func (l *Links) Read(token string, now time.Time) (link Link, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < sha256.Size || strings.ContainsAny(token, "\r\n") { // the decoder ignores line breaks
		return Link{}, false
	}
	sum, body := b[:sha256.Size], b[sha256.Size:]
	if !hmac.Equal(sum, l.mac(body)) {
		return Link{}, false
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&link); err != nil {
		return Link{}, false
	}
	return link, now.Unix() < link.Expires && slices.Contains(l.approvers, link.Approver)
}

func (l *Links) mac(body []byte) []byte {
	m := hmac.New(sha256.New, l.key)
	_, _ = m.Write([]byte("approve ")) // a hash never returns an error
	_, _ = m.Write(body)
	return m.Sum(nil)
}
