package contract_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
)

// inbox has the inbox fields that the tests read.
type inbox struct {
	ID      string `json:"id"`
	Address string `json:"address"`
}

// message has the message fields that the tests read.
type message struct {
	ID          string `json:"id"`
	InboxID     string `json:"inbox_id"`
	ThreadID    string `json:"thread_id"`
	Direction   string `json:"direction"`
	Attachments []struct {
		ID string `json:"id"`
	} `json:"attachments"`
}

// draft has the draft fields that the tests read.
type draft struct {
	ID        string  `json:"id"`
	InboxID   string  `json:"inbox_id"`
	Status    string  `json:"status"`
	Version   int     `json:"version"`
	Subject   string  `json:"subject"`
	MessageID *string `json:"message_id"`
	Expired   bool    `json:"expired"`

	Attachments []struct {
		ID string `json:"id"`
	} `json:"attachments"`
}

// world has the resources for the operations: an inbox with a received message,
// which has a code, a link and an attachment, and a sent one; and an inbox that
// requires approval, with a draft.
type world struct {
	*install
	events        *watch
	inbox, edited inbox  // PATCH changes edited only
	spareKey      string // stop stops it only
	in, out       message
	guarded       inbox // send_policy approval
	draft         draft
	hook          string // the last webhook endpoint created
}

// newWorld fills an installation.
func newWorld(t *testing.T, in *install) *world {
	t.Helper()
	w := &world{install: in}
	w.inbox, w.edited = w.newInbox(t), w.newInbox(t)
	w.in = w.receive(t, w.inbox)
	send := w.call("sendMessage").at("/v1/inboxes/" + w.inbox.ID + "/messages")
	w.out = read[message](t, w.send(t, send.saying(`{"to":"ana@example.org","subject":"Order","text":"Please."}`)).want(t, http.StatusCreated))
	w.guarded = w.newInboxWith(t, `{"send_policy":"approval"}`)
	w.draft = w.newDraft(t)
	return w
}

// newDraft creates a draft and edits it once.
func (w *world) newDraft(t *testing.T) draft {
	t.Helper()
	send := w.call("sendMessage").at("/v1/inboxes/" + w.guarded.ID + "/messages")
	d := read[draft](t, w.send(t, send.saying(`{"to":"ana@example.org","subject":"Order","text":"Please.","attachments":[{"filename":"order.txt","content":"eA=="}]}`)).want(t, http.StatusAccepted))
	edit := w.call("updateDraft").at("/v1/drafts/" + d.ID).saying(`{"subject":"Order 1042"}`)
	return read[draft](t, w.send(t, edit).want(t, http.StatusOK))
}

// approve approves a draft as a person in the dashboard. Only that can be undone for a
// while: what a key approves leaves at once.
func (w *world) approve(t *testing.T, d draft) {
	t.Helper()
	s := w.openStore(t, time.Now)
	mine, err := s.KeyByHash(t.Context(), store.HashKey(firstKey))
	must(t, err)
	link, token := web.NewLink(time.Now())
	session := "session for " + d.ID
	if _, err := s.CreateUser(t.Context(), mine.AccountID, d.ID+"@example.com", store.RoleApprover, link); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UseLink(t.Context(), store.HashKey(token), "no password that is known", store.HashKey(session)); err != nil {
		t.Fatal(err)
	}
	form := strings.NewReader(url.Values{"version": {strconv.Itoa(d.Version)}}.Encode())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.api+"/approvals/"+d.ID+"/approve", form)
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.AddCookie(&http.Cookie{Name: "postroom_session", Value: session}) //nolint:gosec // only for this request
	res, err := w.base.RoundTrip(req)
	must(t, err)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("approving draft %s: %s", d.ID, res.Status)
	}
}

// call returns a call of the operation with the full-access key. A path with
// parameters must still be set.
func (in *install) call(operationID string) call {
	op := in.check.Operation(operationID)
	if op == nil {
		panic("no operation " + operationID)
	}
	return call{op: op, path: op.Path, key: firstKey}
}

func (in *install) newInbox(t *testing.T) inbox {
	t.Helper()
	return in.newInboxWith(t, `{}`)
}

// newInboxWith creates an inbox with the fields of a request.
func (in *install) newInboxWith(t *testing.T, body string) inbox {
	t.Helper()
	return read[inbox](t, in.send(t, in.call("createInbox").saying(body)).want(t, http.StatusCreated))
}

// key is an API key with its secret.
type key struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

// newKey creates a key. fields are the request fields besides the name.
func (in *install) newKey(t *testing.T, fields string) key {
	t.Helper()
	body := `{"name":"contract"}`
	if fields != "" {
		body = `{"name":"contract",` + fields + `}`
	}
	return read[key](t, in.send(t, in.call("createKey").saying(body)).want(t, http.StatusCreated))
}

// scoped creates a key with only these scopes.
func (in *install) scoped(t *testing.T, scopes ...string) key {
	t.Helper()
	list, err := json.Marshal(scopes)
	must(t, err)
	return in.newKey(t, `"scopes":`+string(list))
}

// linkOf returns the path of a download link of the raw message.
func (in *install) linkOf(t *testing.T, m message) string {
	t.Helper()
	a := in.send(t, in.call("getMessageRaw").at("/v1/messages/"+m.ID+"/raw")).want(t, http.StatusFound)
	link, err := url.Parse(a.header.Get("Location"))
	if err != nil || link.Path == "" {
		t.Fatalf("Location %q: %v", a.header.Get("Location"), err)
	}
	return link.EscapedPath()
}

// good returns a valid call of the operation with the full-access key: real ids
// in the path and the first example as the body. It first creates what the call
// would delete.
func (w *world) good(t *testing.T, op *contractcheck.Operation) call {
	t.Helper()
	c := call{op: op, path: w.path(t, op), key: firstKey}
	if names := examples(op); len(names) > 0 {
		c.body = w.example(t, op, names[0])
	}
	switch op.OperationID {
	case "createWebhook":
		w.makeRoom(t)
	case "createContact":
		w.forgetContacts(t)
	}
	if _, keyed := op.Scopes(); !keyed {
		c.key = ""
	}
	return c
}

// path returns the path of the operation with real ids of the right type.
func (w *world) path(t *testing.T, op *contractcheck.Operation) string {
	t.Helper()
	if op.OperationID == "downloadFile" {
		return w.linkOf(t, w.in)
	}
	return w.pathWith(op, func(name string) string { return w.id(t, op, name) })
}

// pathWith returns the path of the operation with each parameter replaced by
// value.
func (*world) pathWith(op *contractcheck.Operation, value func(name string) string) string {
	return paramIn.ReplaceAllStringFunc(op.Path, func(p string) string {
		return url.PathEscape(value(strings.Trim(p, "{}")))
	})
}

var paramIn = regexp.MustCompile(`\{\w+\}`)

// id returns a real id for a path parameter, or an invented one if its type
// cannot be created yet.
func (w *world) id(t *testing.T, op *contractcheck.Operation, param string) string {
	t.Helper()
	switch param {
	case "inbox_id":
		return w.inboxFor(t, op).ID
	case "message_id":
		if op.OperationID == "deleteMessage" {
			return w.simulate(t, w.inbox).ID
		}
		if op.OperationID == "releaseMessage" {
			return w.newQuarantined(t).ID
		}
		if op.OperationID == "updateClaim" {
			return w.newClaimed(t).ID
		}
		return w.in.ID
	case "draft_id":
		if op.OperationID == "sendDraft" || op.OperationID == "rejectDraft" {
			return w.newDraft(t).ID
		}
		if op.OperationID == "undoDraft" {
			d := w.newDraft(t)
			w.approve(t, d)
			return d.ID
		}
		return w.draft.ID
	case "attachment_id":
		if op.OperationID == "getDraftAttachment" {
			return w.draft.Attachments[0].ID
		}
		return w.in.Attachments[0].ID
	case "thread_id":
		return w.in.ThreadID
	case "api_key_id":
		return w.newKey(t, "").ID
	case "webhook_id":
		w.hook = w.newWebhook(t, quietWebhook(w.receiver)).ID
		return w.hook
	case "delivery_id": // depends on its endpoint
		return w.newDelivery(t, w.hook)
	case "email":
		return w.newSuppression(t)
	case "list_id":
		body := `{"direction":"outbound","action":"block","pattern":"a@never.example","inbox_id":"` + w.newInbox(t).ID + `"}`
		return read[struct{ ID string }](t, w.send(t, w.call("createListEntry").saying(body)).want(t, http.StatusCreated)).ID
	case "id":
		switch {
		case op.OperationID == "deleteKey" || op.OperationID == "updateKey":
			return w.newKey(t, "").ID
		case strings.HasPrefix(op.Path, "/v1/templates/"):
			return w.newTemplate(t)
		case strings.HasPrefix(op.Path, "/v1/emails/"):
			return w.newScheduled(t)
		case strings.HasPrefix(op.Path, "/v1/contacts/"):
			return w.newContact(t).ID
		case strings.HasPrefix(op.Path, "/v1/domains/"):
			return w.newDomain(t).ID
		}
	}
	return "x_01k5tt9h8yq4n0c3m2v7w6x5zd"
}

func (w *world) inboxFor(t *testing.T, op *contractcheck.Operation) inbox {
	t.Helper()
	switch op.OperationID {
	case "deleteInbox":
		return w.newInbox(t)
	case "updateInbox":
		return w.edited
	}
	return w.inbox
}
