package mailosaur

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

type (
	message struct {
		ID          string       `json:"id"`
		Type        string       `json:"type"`
		Server      string       `json:"server"`
		From        []address    `json:"from"`
		To          []address    `json:"to"`
		Cc          []address    `json:"cc"`
		Bcc         []address    `json:"bcc"`
		Received    time.Time    `json:"received"`
		Subject     string       `json:"subject"`
		HTML        content      `json:"html"`
		Text        content      `json:"text"`
		Attachments []attachment `json:"attachments"`
		Metadata    metadata     `json:"metadata"`
	}
	content struct {
		Body   string  `json:"body"`
		Links  []link  `json:"links"`
		Codes  []code  `json:"codes"`
		Images []image `json:"images,omitempty"`
	}
	link struct {
		Href string `json:"href"`
		Text string `json:"text"`
	}
	code struct {
		Value string `json:"value"`
	}
	image struct {
		Src string `json:"src"`
		Alt string `json:"alt"`
	}
	attachment struct {
		ID          string `json:"id"`
		ContentType string `json:"contentType"`
		FileName    string `json:"fileName"`
		ContentID   string `json:"contentId"`
		Length      int64  `json:"length"`
		URL         string `json:"url"`
	}
	metadata struct {
		Headers  []header  `json:"headers"`
		MailFrom string    `json:"mailFrom"`
		RcptTo   []address `json:"rcptTo"`
	}
	header struct {
		Field string `json:"field"`
		Value string `json:"value"`
	}
)

// show writes a message as a whole.
func (s server) show(w http.ResponseWriter, r *http.Request, id string) error {
	m, err := vendorapi.Call[gen.Message](r, s.API, http.MethodGet, "/v1/messages/"+url.PathEscape(id), nil, nil)
	if err != nil {
		return err
	}
	out := message{
		ID: m.ID, Type: "Email", Server: serverOf(&m), From: sender(&m), To: addresses(m.To), Cc: addresses(m.Cc), Bcc: addresses(m.Bcc),
		Received: m.CreatedAt, Subject: m.Subject, HTML: bodyOf(&m, m.HTML.Or("")), Text: bodyOf(&m, m.Text.Or("")),
		Attachments: []attachment{}, Metadata: metadata{Headers: []header{}, RcptTo: []address{}},
	}
	links, images := vendorapi.Links(m.HTML.Or(""))
	out.HTML.Links = linksOf(links)
	for _, i := range images {
		out.HTML.Images = append(out.HTML.Images, image{i.Target, i.Text})
	}
	out.Text.Links = linksOf(vendorapi.TextLinks(m.Text.Or("")))
	for _, a := range m.Attachments {
		id := m.ID + "." + a.ID
		out.Attachments = append(out.Attachments, attachment{id, a.ContentType, a.Filename, a.ContentID.Or(""), a.Size, s.BaseURL + "/api/files/attachments/" + id})
	}
	for _, h := range m.Headers {
		out.Metadata.Headers = append(out.Metadata.Headers, header{h.Name, h.Value})
		if strings.EqualFold(h.Name, "Return-Path") {
			out.Metadata.MailFrom = strings.Trim(h.Value, "<>")
		}
	}
	if to, ok := m.DeliveredTo.Get(); ok {
		out.Metadata.RcptTo = append(out.Metadata.RcptTo, address{Email: to})
	}
	return vendorapi.JSON(w, http.StatusOK, out)
}

func bodyOf(m *gen.Message, body string) content {
	c := content{Body: body, Codes: []code{}}
	for _, found := range vendorapi.Codes(m, body) {
		c.Codes = append(c.Codes, code{found})
	}
	return c
}

func linksOf(found []vendorapi.Link) []link {
	out := make([]link, len(found))
	for i, l := range found {
		out[i] = link{l.Target, strings.TrimSpace(l.Text)}
	}
	return out
}

// serverOf returns the server of a message by the address that it reached.
func serverOf(m *gen.Message) string {
	_, domain, _ := strings.Cut(m.DeliveredTo.Or(m.From.Value.Email), "@")
	id, _, _ := strings.Cut(domain, ".")
	return id
}

type file struct {
	FileName    string `json:"fileName"`
	Content     string `json:"content"`
	ContentType string `json:"contentType"`
	ContentID   string `json:"contentId"`
}

// outgoing is a message, reply or forwarded message to create, with the fields of all three.
type outgoing struct {
	To          string `json:"to"`
	Cc          string `json:"cc"`
	From        string `json:"from"`
	Send        bool   `json:"send"`
	Subject     string `json:"subject"`
	Text        string `json:"text"`
	HTML        string `json:"html"`
	Attachments []file `json:"attachments"`
}

// create creates a message on a server. It is simulated: it arrives without being sent.
func (s server) create(w http.ResponseWriter, r *http.Request) error {
	q, err := vendorapi.Query(r, "server")
	if err != nil {
		return err
	}
	var in outgoing
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	for name, used := range map[string]bool{"send": in.Send, "cc": in.Cc != "", "attachments": in.Attachments != nil} {
		if used {
			return vendorapi.Unsupported(name)
		}
	}
	to := cmp.Or(in.To, "test@"+q.Get("server")+".mailosaur.net")
	inboxes, err := vendorapi.Call[gen.InboxList](r, s.API, http.MethodGet, "/v1/inboxes", url.Values{"address": {to}}, nil)
	if err != nil {
		return err
	}
	if len(inboxes.Data) == 0 {
		return httpapi.Invalid("to", "must be the address of an inbox: %s has none", to)
	}
	body := map[string]any{"from": cmp.Or(in.From, to), "subject": in.Subject, "text": in.Text}
	if in.HTML != "" {
		body["html"] = in.HTML
	}
	m, err := vendorapi.Call[gen.Message](r, s.API, http.MethodPost, "/v1/inboxes/"+inboxes.Data[0].ID+"/simulate", nil, body)
	if err != nil {
		return err
	}
	return s.show(w, r, m.ID)
}

func (s server) reply(w http.ResponseWriter, r *http.Request) error { return s.respond(w, r, "reply") }
func (s server) forward(w http.ResponseWriter, r *http.Request) error {
	return s.respond(w, r, "forward")
}

// respond replies to a message or forwards it.
func (s server) respond(w http.ResponseWriter, r *http.Request, how string) error {
	var in outgoing
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	body := map[string]any{}
	for name, value := range map[string]string{"to": in.To, "cc": in.Cc, "text": in.Text, "html": in.HTML, "from": in.From, "subject": in.Subject} {
		if value != "" {
			body[name] = value
		}
	}
	for i, f := range in.Attachments {
		if f.ContentID != "" {
			return vendorapi.Unsupported("attachments[].contentId")
		}
		a := map[string]string{"filename": f.FileName, "content": f.Content}
		if f.ContentType != "" {
			a["content_type"] = f.ContentType
		}
		list, _ := body["attachments"].([]map[string]string)
		body["attachments"] = append(list[:i:i], a)
	}
	m, err := vendorapi.Call[struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}](r, s.API, http.MethodPost, "/v1/messages/"+url.PathEscape(r.PathValue("id"))+"/"+how, nil, body)
	if err != nil {
		return err
	}
	if m.Object != "message" {
		return &httpapi.Error{Status: http.StatusForbidden, Code: gen.ErrorCodeSendingPaused, Message: "the message waits for approval as the draft " + m.ID}
	}
	return s.show(w, r, m.ID)
}
