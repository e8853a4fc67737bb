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

// bodyOf is what the contract says of the JSON body of a request, nil for none.
func bodyOf(op *contractcheck.Operation) *openapi3.MediaType {
	if op.RequestBody == nil {
		return nil
	}
	return op.RequestBody.Value.Content[jsonType]
}

// examples are the names of the operation's request examples.
func examples(op *contractcheck.Operation) []string {
	media := bodyOf(op)
	if media == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(media.Examples))
}

// example is a request example as JSON, with real ids in place of its own, and
// webhooks going to the install's receiver.
func (w *world) example(t *testing.T, op *contractcheck.Operation, name string) []byte {
	t.Helper()
	if op.OperationID == "createDomain" {
		return w.domainBody() // a name that is taken is refused
	}
	b, err := json.Marshal(bodyOf(op).Examples[name].Value.Value)
	if err != nil {
		t.Fatal(err)
	}
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

// ownKey is the idempotency key in an example, under which a second call would be
// no call of its own.
var ownKey = regexp.MustCompile(`"idempotencyKey":"[^"]*",?`)

// schedule is a time in an example, which no email may be scheduled for.
var schedule = regexp.MustCompile(`"scheduledAt":"[^"]*"`)

// tomorrow is a time that an email may be scheduled for.
func tomorrow() string {
	return time.Now().Add(24 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

var idIn = regexp.MustCompile(`\b[a-z]+_[0-9a-z]{26}\b`)
