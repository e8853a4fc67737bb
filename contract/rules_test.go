package contract_test

import (
	"regexp"

	"github.com/postroom/postroom/internal/contractcheck"
)

// rule is why a request that the contract allows may be 400 all the same: a
// schema cannot say it.
type rule struct {
	operation string // a pattern
	param     string // a pattern, of the error's param
	message   string // a pattern, of the error's message
	reason    string
}

var rules = []rule{
	{`.`, `.`, `is not UTF-8 text, or holds a NUL`, "a schema takes any text, databases do not"},
	{`.`, `^cursor$`, `is not of this list`, "a cursor is signed, and belongs to one list with its filters"},
	{`^waitForMessage$`, `^after$`, `is not a message of this inbox`, "a schema does not know what there is"},
}

// ruleFor returns the rule behind a 400, or nil.
func ruleFor(op *contractcheck.Operation, param, message string) *rule {
	for i, r := range rules {
		if regexp.MustCompile(r.operation).MatchString(op.OperationID) && regexp.MustCompile(r.param).MatchString(param) &&
			regexp.MustCompile(r.message).MatchString(message) {
			return &rules[i]
		}
	}
	return nil
}
