package contract_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

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
	b = bytes.ReplaceAll(b, []byte("https://app.example.com/hooks/mail"), []byte(w.receiver))
	return idIn.ReplaceAllFunc(b, func(id []byte) []byte {
		if kind, _, _ := strings.Cut(string(id), "_"); kind == "ibx" {
			return []byte(w.inbox.ID)
		}
		return id
	})
}

var idIn = regexp.MustCompile(`\b[a-z]+_[0-9a-z]{26}\b`)

// built says whether the operation does what it is for. The contract documents
// 501 as long as it does not.
func built(op *contractcheck.Operation) bool {
	return !op.Documents(501)
}
