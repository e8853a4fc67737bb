package handlers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"golang.org/x/net/http/httpguts"

	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/internal/skiptest"
)

// H7: a duplicate name is refused, at any depth and in any spelling.
func TestDuplicateNamesAreRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		var many strings.Builder
		for i := range 20 {
			fmt.Fprintf(&many, `"k%d":1,`, i)
		}
		tests := map[string]string{ // body: path
			`{"name":"a","name":"b"}`:                          "name",
			`{"name":"a","n\u0061me":"b"}`:                     "name",
			`{"metadata":{"run":1,"x":2,"run":1}}`:             "metadata.run",
			`{"metadata":{` + many.String() + `"k19":1}}`:      "metadata.k19",
			`{"metadata":{},"display_name":"x","metadata":{}}`: "metadata",
		}
		for body, place := range tests {
			s.do(t, http.MethodPost, "/v1/inboxes", body, broken).wantError(t, http.StatusBadRequest, "invalid_request "+place)
		}
		in := s.newInbox(t)
		send := "/v1/inboxes/" + in.ID + "/messages"
		s.do(t, http.MethodPost, send, `{"to":[{"email":"a@b.example","name":null},{"email":"a@b.example","email":"c@d.example","name":null}],"subject":"s","text":"t"}`, broken).
			wantError(t, http.StatusBadRequest, "invalid_request to[1].email")
		s.do(t, http.MethodPost, "/v1/inboxes", `{"metadata":{"name":"the same name at another depth"},"name":"once"}`).want(t, http.StatusCreated)
	})
}

// atoms are JSON values, some invalid, to put in the place of others.
var atoms = func() []string {
	all := []string{
		`null`, `true`, `false`, `0`, `-1`, `-0`, `1.0`, `1.5`, `1e400`, `-1e400`, `1e-400`, `9223372036854775808`, `0x10`, `01`, `+1`, `.5`,
		`NaN`, `Infinity`, `undefined`, `''`, `'a'`, `""`, `" "`, `"\u0000"`, `"\ud800"`, `"\udc00\ud800"`, `"\uD83D\uDE00"`, `"\x41"`,
		"\"\x00\"", "\"\xff\xfe\"", "\"\xed\xa0\x80\"", "\"a\nb\"", `"a\r\nBcc: x@y.example"`, `"\u2028"`, `"\u0085"`, `[]`, `{}`, `[null]`, `{"":null}`, `{"a":{"a":{}}}`,
		`[[[[[[]]]]]]`, `[1,]`, `{"a"}`, `{"a":1,"a":2}`, `"a@b.example"`, `["a@b.example","a@b.example"]`, `{"email":null}`, `{"email":"a@b.example","name":7}`,
		`"2030-01-01T00:00:00Z"`, `"0000-00-00T00:00:00Z"`, `"9999-12-31T23:59:60+99:99"`, `"../../x"`, `"%00"`, `"'; DROP TABLE inboxes; --"`, `"<script>"`,
		`"*"`, `"%_\\"`, "\ufeff", `/* */1`, `1 2`, `"`, `{`, `[`, `\`,
	}
	for _, c := range []string{"a", "ä", "😀", "\\u0061", "a@"} {
		for _, n := range []int{65, 101, 254, 999, 5000} {
			all = append(all, `"`+strings.Repeat(c, n)+`"`)
		}
	}
	return append(all, strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 20_000), strings.Repeat("9", 1<<20), "1e"+strings.Repeat("9", 1000),
		`[`+strings.Repeat(`"a@b.example",`, 200)+`"a@b.example"]`)
}()

// hostile generates requests from the contract with invalid ids, parameters and
// bodies.
type hostile struct {
	rng *rand.Rand
	ids map[string]string // of path parameters
	ops []*contractcheck.Operation
}

func newHostile(t *testing.T, rng *rand.Rand, ids map[string]string) *hostile {
	t.Helper()
	check, err := checker()
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{rng: rng, ids: ids}
	for _, op := range check.Operations() {
		if ok := op.Responses.Status(http.StatusOK); op.OperationID == "waitForMessage" || ok != nil && ok.Value.Content["text/event-stream"] != nil {
			continue // it would wait
		}
		h.ops = append(h.ops, op)
		for range 4 * len(bodyExamples(op)) { // most variants concern the body
			h.ops = append(h.ops, op)
		}
	}
	return h
}

func bodyExamples(op *contractcheck.Operation) openapi3.Examples {
	if op.RequestBody == nil || op.RequestBody.Value.Content["application/json"] == nil {
		return nil
	}
	return op.RequestBody.Value.Content["application/json"].Examples
}

const spotMark = "a mark that is replaced"

// request returns the next one.
func (h *hostile) request(key string) *http.Request {
	op := h.ops[h.rng.IntN(len(h.ops))]
	examples := bodyExamples(op)
	var body string
	if len(examples) > 0 {
		names := slices.Sorted(maps.Keys(examples))
		text, _ := json.Marshal(examples[names[h.rng.IntN(len(names))]].Value.Value) // cannot fail
		var doc any
		_ = json.Unmarshal(text, &doc) // cannot fail
		body = h.body(doc)
	}
	path := hostilePath.ReplaceAllStringFunc(op.Path, func(p string) string {
		id := h.ids[strings.Trim(p, "{}")]
		if id == "" || len(examples) == 0 {
			return url.PathEscape(h.text())
		}
		return id
	})
	r := httptest.NewRequest(op.Method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	h.parameters(r, op)
	return r
}

// parameters sets some of the operation's parameters in the query and in
// headers.
func (h *hostile) parameters(r *http.Request, op *contractcheck.Operation) {
	query := url.Values{}
	for _, p := range slices.Concat(op.Shared, op.Parameters) {
		switch value := h.text(); {
		case h.rng.IntN(3) > 0:
		case p.Value.In == "query":
			query.Add(p.Value.Name, value)
		case p.Value.In == "header" && httpguts.ValidHeaderFieldValue(value): // net/http accepts no others
			r.Header.Set(p.Value.Name, value)
		}
	}
	r.URL.RawQuery = query.Encode()
	if h.rng.IntN(10) == 0 {
		r.URL.RawQuery += "&%zz=%&;=%00&limit=1&limit=2&" + h.text()
	}
}

// text returns an atom for a path or a parameter.
func (h *hostile) text() string {
	atom := atoms[h.rng.IntN(len(atoms))]
	if len(atom) > 32<<10 {
		return "x_00000000000000000000000000" // longer headers are too large
	}
	return strings.Trim(atom, `"`)
}

var hostilePath = regexp.MustCompile(`\{\w+\}`)

// body puts an atom in place of a value, before or after the document, or
// changes its bytes.
func (h *hostile) body(doc any) string {
	atom := atoms[h.rng.IntN(len(atoms))]
	switch h.rng.IntN(10) {
	case 0:
		text, _ := json.Marshal(doc)
		return atom + string(text)
	case 1:
		text, _ := json.Marshal(doc)
		return string(text) + atom
	case 2:
		text, _ := json.Marshal(doc)
		for range 1 + h.rng.IntN(3) {
			text[h.rng.IntN(len(text))] = byte(h.rng.IntN(256)) //nolint:gosec // it fits
		}
		return string(text)
	}
	text, _ := json.Marshal(h.marked(doc))
	return strings.Replace(string(text), `"`+spotMark+`"`, atom, 1)
}

// marked returns doc with the mark at a random position.
func (h *hostile) marked(doc any) any {
	switch v := doc.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		i := h.rng.IntN(len(names) + 2)
		switch {
		case i < len(names):
			v[names[i]] = h.marked(v[names[i]])
			return v
		case i == len(names):
			v["more"] = spotMark
			return v
		}
	case []any:
		if len(v) > 0 && h.rng.IntN(3) > 0 {
			i := h.rng.IntN(len(v))
			v[i] = h.marked(v[i])
			return v
		}
	}
	return spotMark
}

// H7: no request causes a 500 response, and every error is JSON with a code.
func TestHostileRequests(t *testing.T) {
	skiptest.UnderRace(t)
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		in := s.newInbox(t)
		ids := map[string]string{"inbox_id": in.ID, "message_id": s.receive(t, in, "Subject: Hi").ID}
		h := newHostile(t, rand.New(rand.NewPCG(seed, 0)), ids)
		statuses := map[int]int{}
		for range hostileRequests {
			r := h.request(s.key)
			w := httptest.NewRecorder()
			s.web.Config.Handler.ServeHTTP(w, r)
			statuses[w.Code]++
			var e struct {
				Error struct{ Code, Message string }
			}
			err := json.Unmarshal(w.Body.Bytes(), &e)
			if w.Code >= http.StatusBadRequest && (err != nil || e.Error.Code == "" || e.Error.Message == "") {
				t.Errorf("%s %s: status %d %.200s: %v", r.Method, r.URL, w.Code, w.Body, err)
			}
			if w.Code == http.StatusInternalServerError {
				t.Fatalf("%s %s: status %d %s", r.Method, r.URL, w.Code, w.Body)
			}
		}
		t.Logf("statuses: %v", statuses)
		if statuses[http.StatusBadRequest] < hostileRequests/10 {
			t.Errorf("few requests were refused: %v", statuses)
		}
	})
}
