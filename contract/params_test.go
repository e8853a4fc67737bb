package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/postroom/postroom/internal/contractcheck"
)

// sample returns a valid value for a query or header parameter whose schema has
// none.
func (w *world) sample(name string) string {
	switch name {
	case "from":
		return "*@example.org"
	case "subject", "q":
		return "sign-in"
	case "thread_id":
		return w.in.ThreadID
	case "inbox_id":
		return w.inbox.ID
	case "after":
		return w.in.ID
	case "tag":
		return "team:growth"
	}
	return "x"
}

// values returns valid and invalid values for a parameter according to its
// schema.
func (w *world) values(p *openapi3.Parameter) []string {
	s := p.Schema.Value
	switch {
	case s.Type.Is("array"):
		s = s.Items.Value
		all := []string{"nonsense", fmt.Sprintf("%v,nonsense", s.Enum[0])}
		return append(all, fmt.Sprintf("%v,%v", s.Enum[0], s.Enum[1]))
	case len(s.Enum) > 0:
		all := []string{"nonsense", ""}
		for _, v := range s.Enum {
			all = append(all, fmt.Sprint(v), strings.ToUpper(fmt.Sprint(v)))
		}
		return all
	case s.Type.Is("integer"):
		least, most := int(*s.Min), int(*s.Max)
		return []string{
			fmt.Sprint(least), fmt.Sprint(most), fmt.Sprint(least - 1), fmt.Sprint(most + 1), "-1", "1.5", "1e1", "x", "", "9223372036854775808",
		}
	case s.Format == "date-time":
		return []string{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456789+02:00", "2026-01-01", "2026-13-01T00:00:00Z", "now", ""}
	}
	all := []string{w.sample(p.Name), "a\x00b", "a\xff"}
	for _, n := range (schemas{s}).sizes(textBounds) {
		all = append(all, strings.Repeat("ä", n))
	}
	return append(all, "")
}

// parametersAreChecked tries values at and beyond the limits of each query and
// header parameter. Exactly those that the contract refuses get 400 with the
// name of the parameter.
func parametersAreChecked(t *testing.T, w *world) {
	book := newRuleBook(paramRules)
	defer book.wantAllNeeded(t)
	w.eachOperation(t, func(t *testing.T, op *contractcheck.Operation) {
		for _, ref := range slices.Concat(op.Shared, op.Parameters) {
			p := ref.Value
			if p.In == "path" || p.Name == "Range" {
				continue // have their own steps
			}
			for _, value := range w.values(p) {
				w.tryParameter(t, book, op, p, value)
			}
		}
	})
}

// unknownParametersAreRefused adds a parameter that no operation has. MCP, probes
// and download links are not checked.
func unknownParametersAreRefused(t *testing.T, w *world) {
	w.eachOperation(t, func(t *testing.T, op *contractcheck.Operation) {
		if !strings.HasPrefix(op.Path, "/v1/") || strings.HasPrefix(op.Path, "/v1/files/") {
			return
		}
		a := w.send(t, w.good(t, op).asking("surprise", "1").breaking()).wantCode(t, http.StatusBadRequest, "invalid_request")
		if got := a.fault().Error.Param; got != "surprise" {
			t.Errorf("%s: an unknown parameter: param %q", a.call, got)
		}
	})
}

func (w *world) tryParameter(t *testing.T, book *ruleBook, op *contractcheck.Operation, p *openapi3.Parameter, value string) {
	t.Helper()
	c := w.good(t, op).breaking()
	if op.OperationID == "waitForMessage" {
		c = c.asking("timeout", "1")
	}
	if p.In == "header" {
		if strings.ContainsAny(value, "\x00") {
			return // not valid in an HTTP header
		}
		c = c.with(p.Name, value)
	} else {
		c = c.asking(p.Name, value)
	}
	a := w.send(t, c)
	f := a.fault().Error
	valid := w.valid(t, c)
	switch {
	case !valid && (a.status != http.StatusBadRequest || !strings.HasPrefix(f.Param, p.Name)):
		t.Errorf("%s %s=%q breaks the contract, but the response is %d: %s", a.call, p.Name, value, a.status, a.body)
	case valid && a.status == http.StatusBadRequest && !book.allows(op, p.Name, f.Message):
		t.Errorf("%s %s=%q satisfies the contract, but the response is %s", a.call, p.Name, value, a.body)
	}
}
