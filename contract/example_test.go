package contract_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/postroom/postroom/internal/contractcheck"
)

// bodyOf returns the description of a JSON request body, or nil for none.
func bodyOf(op *contractcheck.Operation) *openapi3.MediaType {
	if op.RequestBody == nil {
		return nil
	}
	return op.RequestBody.Value.Content[jsonType]
}

// examples returns the names of the operation's request examples.
func examples(op *contractcheck.Operation) []string {
	media := bodyOf(op)
	if media == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(media.Examples))
}

// example returns a request example as JSON, with real ids and with the
// installation's receiver as the webhook URL.
func (w *world) example(t *testing.T, op *contractcheck.Operation, name string) []byte {
	t.Helper()
	if op.OperationID == "createDomain" {
		return w.domainBody() // an existing name would be refused
	}
	if op.OperationID == "createListEntry" { // the scope send is enough for an inbox
		return []byte(`{"direction":"outbound","action":"block","pattern":"*@` + name + `.never.example","inbox_id":"` + w.inbox.ID + `"}`)
	}
	if op.OperationID == "stopSending" { // of nothing that other calls need
		if w.spareKey == "" {
			w.spareKey = w.newKey(t, "").ID
		}
		return []byte(`{"key_id":"` + w.spareKey + `"}`)
	}
	b, err := json.Marshal(bodyOf(op).Examples[name].Value.Value)
	must(t, err)
	b = bytes.ReplaceAll(b, []byte("@mail.example.com"), []byte("@"+mailDomain))
	b = ownKey.ReplaceAll(b, nil)
	b = schedule.ReplaceAll(b, []byte(`"scheduledAt":"`+tomorrow()+`"`))
	b = bytes.ReplaceAll(b, []byte("https://app.example.com/hooks/mail"), []byte(w.receiver))
	return idIn.ReplaceAllFunc(b, func(id []byte) []byte {
		switch kind, _, _ := strings.Cut(string(id), "_"); kind {
		case "ibx":
			return []byte(w.inbox.ID)
		case "tmpl":
			return []byte(w.newTemplate(t))
		}
		return id
	})
}

// ownKey matches the idempotency key of an example, which would turn a second
// call into a repeat.
var ownKey = regexp.MustCompile(`"idempotencyKey":"[^"]*",?`)

// schedule matches a time in an example, which is not valid for scheduling.
var schedule = regexp.MustCompile(`"scheduledAt":"[^"]*"`)

// tomorrow returns a time for which an email may be scheduled.
func tomorrow() string {
	return time.Now().Add(24 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

var idIn = regexp.MustCompile(`\b[a-z]+_([0-9a-z]{26}|[0-9a-z]{14,17})\b`)
