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

	"golang.org/x/net/html"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
)

// maxRead limits the messages that one request reads: catchers keep few.
const maxRead = 2000

// Received returns the received messages that the caller has access to, newest first: at
// most 2,000. The filters are those of GET /v1/messages.
func (a API) Received(r *http.Request, filters url.Values) iter.Seq2[*gen.Message, error] {
	q := url.Values{"direction": {"in"}}
	maps.Copy(q, filters)
	page := 100
	if q.Has("include") {
		page = 20 // a text may be large
	}
	q.Set("limit", strconv.Itoa(page))
	return func(yield func(*gen.Message, error) bool) {
		for range maxRead / page { // a page may be empty, and have one after it
			list, err := Call[gen.MessageList](r, a, http.MethodGet, "/v1/messages", q, nil)
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
			q.Set("cursor", list.Cursor.Value)
		}
	}
}

// Delete deletes messages. One that is already deleted is not an error.
func (a API) Delete(r *http.Request, ids []string) error {
	for _, id := range ids {
		_, err := a.Do(r, http.MethodDelete, Path("messages", id), nil, nil)
		if e, ok := errors.AsType[*httpapi.Error](err); err != nil && (!ok || e.Status != http.StatusNotFound) {
			return err
		}
	}
	return nil
}

// ServeFile serves the file that an operation of the API has a signed link to. A link to
// another server is a redirect.
func (a API) ServeFile(w http.ResponseWriter, r *http.Request, operation string) error {
	resp, err := a.Do(r, http.MethodGet, operation, nil, nil)
	if err != nil {
		return err
	}
	link := resp.Header.Get("Location")
	if link == "" {
		var file struct {
			URL string `json:"download_url"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&file); err != nil {
			return err
		}
		link = file.URL
	}
	i := strings.Index(link, "/v1/files/")
	if i < 0 {
		http.Redirect(w, r, link, http.StatusFound)
		return nil
	}
	inner, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://localhost"+link[i:], http.NoBody)
	if err != nil {
		return err
	}
	inner.RemoteAddr = r.RemoteAddr
	a.Handler.ServeHTTP(w, inner)
	return nil
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

// Link is a link or an image of a message.
type Link struct{ Target, Text string }

// Links returns the links and images of an HTML body in their order.
func Links(body string) (links, images []Link) {
	links, images = []Link{}, []Link{}
	z, open := html.NewTokenizer(strings.NewReader(body)), false
	var text strings.Builder // of the open link
	for {
		switch z.Next() {
		case html.ErrorToken:
			return links, images
		case html.TextToken:
			if open {
				text.Write(z.Text())
				links[len(links)-1].Text = text.String()
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == "a" {
				open = false
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			at := func(key string) string {
				if i := slices.IndexFunc(t.Attr, func(a html.Attribute) bool { return a.Key == key }); i >= 0 {
					return t.Attr[i].Val
				}
				return ""
			}
			switch {
			case t.Data == "a" && at("href") != "":
				text.Reset()
				links, open = append(links, Link{at("href"), ""}), true
			case t.Data == "img":
				images = append(images, Link{at("src"), at("alt")})
			}
		}
	}
}

// TextLinks returns the links of a plain text in their order.
func TextLinks(text string) []Link {
	links := []Link{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n<>\"()[]", r) }) {
		if strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "http://") {
			word = strings.TrimRight(word, ".,;:!?")
			links = append(links, Link{word, word})
		}
	}
	return links
}

// Codes returns the codes found in a message that are in a body.
func Codes(m *gen.Message, body string) []string {
	found := []string{}
	if x, ok := m.Extracted.Get(); ok {
		for _, code := range x.Codes {
			if strings.Contains(body, code) {
				found = append(found, code)
			}
		}
	}
	return found
}
