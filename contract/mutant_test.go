package contract_test

import (
	"encoding/json"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/store/storetest"
)

// TestMutants changes each request example in every place. A mutant that
// violates the contract must get 400. A valid one must not, unless a listed
// rule applies. None may get 500. `make rounds` sends all of them on both databases.
func TestMutants(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e storetest.Engine) {
		w := newWorld(t, start(t, e, newChecker(t), "POSTROOM_RATE_LIMITS=off"))
		book := newRuleBook(bodyRules)
		var total tally
		w.eachBody(t, func(t *testing.T, op *contractcheck.Operation) {
			n := w.tryMutants(t, e, book, op)
			t.Logf("%+v", n)
			total.add(n)
		})
		if allMutants {
			book.wantAllNeeded(t)
		}
		t.Logf("%d mutants: %d break the contract; %d do not; a rule refuses %d of these",
			total.broken+total.valid, total.broken, total.valid, total.byRule)
	})
}

// tally counts mutants.
type tally struct {
	broken        int // mutants that violate the contract
	valid, byRule int // valid ones, and those of them refused by a rule
}

func (n *tally) add(more tally) {
	n.broken += more.broken
	n.valid += more.valid
	n.byRule += more.byRule
}

func (w *world) tryMutants(t *testing.T, e storetest.Engine, book *ruleBook, op *contractcheck.Operation) tally {
	t.Helper()
	var n tally
	breaker := newMutator()
	for _, name := range examples(op) {
		var example any
		must(t, json.Unmarshal(w.example(t, op, name), &example))
		c := w.good(t, op).breaking()
		for _, m := range breaker.mutants(example, schemasOf(bodyOf(op).Schema)) {
			c.body = m.body
			valid := w.valid(t, c)
			if valid && m.where == "timeout" { // the response would come when it is over
				continue
			}
			if !allMutants && !sampled(e, op, m) {
				continue
			}
			a := w.send(t, c)
			f := a.fault().Error
			if valid {
				n.valid++
			} else {
				n.broken++
			}
			switch refused := a.status == http.StatusBadRequest; {
			case !valid && !refused:
				t.Errorf("%s, %s %s: the contract refuses it, but the status is %d\n%.300s\n%.500s", name, m.where, m.what, a.status, m.body, a.body)
			case !valid && !names(f.Param, m.where):
				t.Errorf("%s, %s %s: the error names %q\n%.300s\n%.500s", name, m.where, m.what, f.Param, m.body, a.body)
			case !valid || !refused:
			case !book.allows(op, f.Param, f.Message):
				t.Errorf("%s, %s %s: the contract allows it\n%.300s\n%.500s", name, m.where, m.what, m.body, a.body)
			default:
				n.byRule++
			}
		}
	}
	return n
}

// sampled reports whether `make test` sends a mutant to the program on an engine: half of
// the mutants go to one of both, the same ones in each run.
func sampled(e storetest.Engine, op *contractcheck.Operation, m mutant) bool {
	sum := crc32.ChecksumIEEE([]byte(op.OperationID + " " + m.where + " " + m.what))
	return sum%4 == map[storetest.Engine]uint32{storetest.SQLite: 0, storetest.PostgreSQL: 1}[e]
}

// names reports whether an error names the location of a fault, or one above or
// below it. The fault may also be in a related field: scopes for mode, or
// template for html.
func names(param, where string) bool {
	return where == "" || where == "mode" && param == "scopes" || where == "html" && param == "template" || param != "" && (strings.HasPrefix(param, where) || strings.HasPrefix(where, param))
}
