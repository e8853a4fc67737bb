package vendorapi

import (
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
)

// MaxRead limits the items that one request reads of a list: catchers keep few messages.
const MaxRead = 2000

// ErrMore follows the items of a list that has more than MaxRead.
var ErrMore = errors.New("the list has more items than one request reads")

// List returns the items of a list of the API, newest first: at most MaxRead of them, and
// then ErrMore if there are more.
func List[T any](r *http.Request, a API, path string, filters url.Values) iter.Seq2[*T, error] {
	q := url.Values{}
	maps.Copy(q, filters)
	page := 100
	if q.Has("include") {
		page = 20 // a text may be large
	}
	q.Set("limit", strconv.Itoa(page))
	return func(yield func(*T, error) bool) {
		for range MaxRead / page { // a page may be empty, and have one after it
			list, err := Call[struct {
				Data    []T    `json:"data"`
				HasMore bool   `json:"has_more"`
				Cursor  string `json:"cursor"`
			}](r, a, http.MethodGet, path, q, nil)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range list.Data {
				if !yield(&list.Data[i], nil) {
					return
				}
			}
			if !list.HasMore {
				return
			}
			q.Set("cursor", list.Cursor)
		}
		yield(nil, ErrMore)
	}
}

// Received returns the newest received messages that the caller has access to, at most
// MaxRead. The filters are those of GET /v1/messages.
func (a API) Received(r *http.Request, filters url.Values) iter.Seq2[*gen.Message, error] {
	q := url.Values{"direction": {"in"}}
	maps.Copy(q, filters)
	return func(yield func(*gen.Message, error) bool) {
		for m, err := range List[gen.Message](r, a, "/v1/messages", q) {
			if errors.Is(err, ErrMore) || !yield(m, err) {
				return
			}
		}
	}
}

// Delete deletes messages. One that is already deleted is not an error.
func (a API) Delete(r *http.Request, ids []string) error {
	for _, id := range ids {
		_, err := a.Do(r, http.MethodDelete, Path(r, "messages", id), nil, nil)
		if e, ok := errors.AsType[*httpapi.Error](err); err != nil && (!ok || e.Status != http.StatusNotFound) {
			return err
		}
	}
	return nil
}

// Link is the signed link to a file.
type Link struct {
	URL       string    `json:"download_url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Link returns the signed link that the operation with a [Path] returns or leads to.
func (a API) Link(r *http.Request, operation ...string) (link Link, err error) {
	resp, err := a.Do(r, http.MethodGet, Path(r, operation...), nil, nil)
	if err != nil {
		return link, err
	}
	if to := resp.Header.Get("Location"); to != "" {
		return Link{to, time.Now().Add(time.Minute)}, nil // links work for longer
	}
	return link, json.NewDecoder(resp.Body).Decode(&link)
}

// File returns the handler that serves the file of a [API.Link]. A link to another server is
// a redirect.
func (a API) File(operation ...string) Handler {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		link, err := a.Link(r, operation...)
		if err != nil {
			return nil, err
		}
		i := strings.Index(link.URL, "/v1/files/")
		if i < 0 {
			http.Redirect(w, r, link.URL, http.StatusFound)
			return nil, nil
		}
		inner, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://localhost"+link.URL[i:], http.NoBody)
		if err != nil {
			return nil, err
		}
		inner.RemoteAddr = r.RemoteAddr
		a.Handler.ServeHTTP(w, inner)
		return nil, nil
	}
}

// From returns the sender of a message, as a list.
func From(m *gen.Message) []gen.MailAddress {
	if from, ok := m.From.Get(); ok {
		return []gen.MailAddress{from}
	}
	return nil
}

// Header returns the first value of a header field, or "".
func Header(m *gen.Message, name string) string {
	for _, h := range m.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

// Recipients are the addresses that a received message was sent to: those in its header,
// and the one that it was delivered to.
func Recipients(m *gen.Message) []string {
	all := Mapped(slices.Concat(m.To, m.Cc, m.Bcc), func(a gen.MailAddress) string { return a.Email })
	if to, ok := m.DeliveredTo.Get(); ok {
		all = append(all, to)
	}
	return all
}

// Contains reports whether text contains part. Case does not matter.
func Contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
