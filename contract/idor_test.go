package contract_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/apikey"
	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
)

// othersIDs (H11) calls each operation with ids that the caller must not see:
// of another account, of an inbox outside the key's inbox_ids, deleted, of
// another type, and unknown. All get the same response, and nothing changes.
func othersIDs(t *testing.T, w *world) {
	stranger, narrow := w.stranger(t), w.newKey(t, `"inbox_ids":["`+w.newInbox(t).ID+`"]`).Key
	targets := map[*contractcheck.Operation][]target{}
	w.eachKeyed(t, func(t *testing.T, op *contractcheck.Operation, _ []string) {
		if len(named(op)) == 0 {
			return
		}
		there := w.target(t, op)
		all := []target{
			there.as("another account", stranger),
			there.mapped(ofAnotherKind, func(id string) string { _, body, _ := strings.Cut(id, "_"); return "zzz_" + body }),
			there.mapped("of nothing", func(id string) string {
				kind, _, _ := strings.Cut(id, "_")
				return kind + "_00000000000000000000000000"
			}),
		}
		isEmail := strings.HasPrefix(op.Path, "/v1/emails/")
		if !isEmail { // cancelled emails remain
			all = append(all, w.deletedTarget(t, op))
		}
		if underInbox(op) || isEmail {
			all = append(all, there.as("a key of another inbox", narrow))
		}
		targets[op] = all
	})
	before := w.settled(t)
	for op, all := range targets {
		t.Run(op.OperationID, func(t *testing.T) {
			var first []byte
			for _, to := range all {
				a := w.send(t, to.call(t, w, op)).wantCode(t, http.StatusNotFound, "not_found")
				if to.name == ofAnotherKind { // the text is about the id, which the caller knows
					continue
				}
				body := withoutRequestID(t, a)
				if first == nil {
					first = body
				}
				if !bytes.Equal(body, first) {
					t.Errorf("%s: responses differ: %s: %s, else %s", a.call, to.name, body, first)
				}
			}
		})
	}
	if d := cmp.Diff(before, w.settled(t)); d != "" {
		t.Errorf("something changed:\n%s", d)
	}
}

// ofAnotherKind names the target whose ids have a wrong prefix.
const ofAnotherKind = "of another kind"

// target is the ids of a call and its key.
type target struct {
	name string
	ids  map[string]string // by parameter
	key  string
}

func (to target) as(name, key string) target { return target{name, to.ids, key} }

// mapped returns the target with other ids.
func (to target) mapped(name string, change func(string) string) target {
	ids := map[string]string{}
	for param, id := range to.ids {
		ids[param] = change(id)
	}
	return target{name, ids, to.key}
}

func (to target) call(t *testing.T, w *world, op *contractcheck.Operation) call {
	t.Helper()
	c := call{op: op, path: w.pathWith(op, func(name string) string { return to.ids[name] }), key: to.key}.breaking()
	if names := examples(op); len(names) > 0 {
		c.body = w.example(t, op, names[0])
	}
	if id, ok := to.ids[inboxFilter]; ok && !strings.Contains(op.Path, "{inbox_id}") {
		c = c.asking(inboxFilter, id)
	}
	return c
}

const inboxFilter = "inbox_id"

// named returns the parameters of the operation that are ids.
func named(op *contractcheck.Operation) []string {
	var all []string
	for _, p := range paramIn.FindAllString(op.Path, -1) {
		all = append(all, strings.Trim(p, "{}"))
	}
	if op.OperationID != "callMcp" && op.Parameters.GetByInAndName("query", inboxFilter) != nil { // callMcp has it only for tools
		all = append(all, inboxFilter)
	}
	return all
}

// underInbox reports whether the target of the operation belongs to an inbox.
func underInbox(op *contractcheck.Operation) bool {
	return slices.ContainsFunc(named(op), func(p string) bool {
		return slices.Contains([]string{"inbox_id", "message_id", "thread_id", "draft_id"}, p)
	})
}

// target returns an existing target.
func (w *world) target(t *testing.T, op *contractcheck.Operation) target {
	t.Helper()
	to := target{name: "what there is", ids: map[string]string{}, key: firstKey}
	for _, p := range named(op) {
		to.ids[p] = w.id(t, op, p)
	}
	return to
}

// deletedTarget returns a deleted target: an inbox with everything in it, or
// the resource that the path itself deletes.
func (w *world) deletedTarget(t *testing.T, op *contractcheck.Operation) target {
	t.Helper()
	if underInbox(op) {
		gone := newWorld(t, w.install)
		to := gone.target(t, op)
		for _, in := range []inbox{gone.inbox, gone.edited, gone.guarded} {
			w.send(t, w.call("deleteInbox").at("/v1/inboxes/"+in.ID)).want(t, http.StatusOK)
		}
		if op.OperationID == "deleteInbox" { // needs its own inbox
			w.send(t, w.call("deleteInbox").at("/v1/inboxes/"+to.ids["inbox_id"])).want(t, http.StatusOK)
		}
		return to.as("deleted", firstKey)
	}
	to := w.target(t, op)
	for _, other := range w.check.Operations() {
		if other.Method == http.MethodDelete && strings.HasPrefix(op.Path, other.Path) {
			w.send(t, call{op: other, path: w.pathWith(other, func(name string) string { return to.ids[name] }), key: firstKey}).want(t, http.StatusOK)
			return to.as("deleted", firstKey)
		}
	}
	t.Fatalf("nothing deletes what %s names", op.Path)
	return to
}

// stranger returns a full-access key of another account.
func (w *world) stranger(t *testing.T) string {
	t.Helper()
	s := w.openStore(t, time.Now)
	a, err := s.CreateAccount(t.Context(), "strangers")
	must(t, err)
	secret := apikey.New("live", "sk")
	_, err = s.CreateKey(t.Context(), store.Key{
		AccountID: a.Seq, Name: "stranger", Hash: store.HashKey(secret), Prefix: apikey.Prefix(secret), Hint: apikey.Hint(secret),
		Mode: store.KeyLive, Scopes: store.JSON[[]string]{V: []string{"*"}}, AllowedIPs: store.JSON[[]string]{V: []string{}},
	})
	must(t, err)
	return secret
}

// onItsWay matches states of mail that delivery will change.
var onItsWay = regexp.MustCompile(`"status": ?"(queued|sending)"`)

// settled returns everythingListed once no delivery is pending.
func (w *world) settled(t *testing.T) (all string) {
	t.Helper()
	waittest.Until(t, "no message is being delivered", func() bool {
		all = w.everythingListed(t)
		return !onItsWay.MatchString(all)
	})
	return all
}

// everythingListed returns the contents of all lists without a path parameter.
// It omits the last use of keys, which is written later.
func (w *world) everythingListed(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, op := range w.check.Operations() {
		list := op.Parameters.GetByInAndName("query", "cursor") != nil || op.OperationID == "getUsage"
		if !list || op.Method != http.MethodGet || strings.Contains(op.Path, "{") || op.OperationID == "listEvents" { // the log repeats past states
			continue
		}
		c := call{op: op, path: op.Path, key: firstKey}
		if op.Parameters.GetByInAndName("query", "limit") != nil {
			c = c.asking("limit", "100")
		}
		sorted, err := json.MarshalIndent(read[any](t, w.send(t, c).want(t, http.StatusOK)), "", " ") // object members come in any order
		must(t, err)
		all.Write(append(sorted, '\n'))
	}
	return lastUsed.ReplaceAllString(all.String(), "")
}

var lastUsed = regexp.MustCompile(`"last_used_at": ("[^"]*"|null)`)

// withoutRequestID returns the body of an error without its request id.
func withoutRequestID(t *testing.T, a response) []byte {
	t.Helper()
	body := read[struct {
		Error map[string]any `json:"error"`
	}](t, a).Error
	delete(body, "request_id")
	b, err := json.Marshal(body)
	must(t, err)
	return b
}
