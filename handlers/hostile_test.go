package handlers_test

import (
	"encoding/json"
	"fmt"
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
	s := serve(t)
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

func bodyExamples(op *contractcheck.Operation) openapi3.Examples {
	if op.RequestBody == nil || op.RequestBody.Value.Content["application/json"] == nil {
		return nil
	}
	return op.RequestBody.Value.Content["application/json"].Examples
}

// jsonValue matches the names and the values of a JSON text that are neither objects nor lists.
var jsonValue = regexp.MustCompile(`"(?:[^"\\]|\\.)*":?|-?\d[\d.]*|true|false|null`)

var hostilePath = regexp.MustCompile(`\{\w+\}`)

// hostileRequest returns a call of a random operation with invalid ids, parameters and body. ids
// are those of path parameters.
func hostileRequest(rng *rand.Rand, op *contractcheck.Operation, ids map[string]string) *http.Request {
	atom := atoms[rng.IntN(len(atoms))]
	text := func() string { // for a path, a parameter or a header
		if a := atoms[rng.IntN(len(atoms))]; len(a) < 32<<10 {
			return strings.Trim(a, `"`)
		}
		return "x_00000000000000000000000000" // longer headers are too large
	}
	var body string
	if examples := bodyExamples(op); len(examples) > 0 {
		for _, example := range examples { // any
			b, _ := json.Marshal(example.Value.Value) // cannot fail
			body = string(b)
		}
		spots := jsonValue.FindAllStringIndex(body, -1)
		switch spot := []int{0, len(body)}; rng.IntN(10) {
		case 0:
			body = atom + body
		case 1:
			body += atom
		case 2:
			b := []byte(body)
			b[rng.IntN(len(b))] = byte(rng.IntN(256)) //nolint:gosec // it fits
			body = string(b)
		default:
			if len(spots) > 0 {
				spot = spots[rng.IntN(len(spots))]
			}
			body = body[:spot[0]] + atom + body[spot[1]:]
		}
	}
	path := hostilePath.ReplaceAllStringFunc(op.Path, func(p string) string {
		if id := ids[strings.Trim(p, "{}")]; id != "" && body != "" {
			return id
		}
		return url.PathEscape(text())
	})
	r := httptest.NewRequest(op.Method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	query := url.Values{}
	for _, p := range slices.Concat(op.Shared, op.Parameters) {
		switch value := text(); {
		case rng.IntN(3) > 0:
		case p.Value.In == "query":
			query.Add(p.Value.Name, value)
		case p.Value.In == "header" && httpguts.ValidHeaderFieldValue(value): // net/http accepts no others
			r.Header.Set(p.Value.Name, value)
		}
	}
	r.URL.RawQuery = query.Encode()
	if rng.IntN(10) == 0 {
		r.URL.RawQuery += "&%zz=%&;=%00&limit=1&limit=2&" + text()
	}
	return r
}

// H7: no request causes a 500 response, and every error is JSON with a code.
func TestHostileRequests(t *testing.T) {
	skiptest.UnderRace(t)
	s := serve(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	in := s.newInbox(t)
	ids := map[string]string{"inbox_id": in.ID, "message_id": s.receive(t, in, "Subject: Hi").ID}
	ops := slices.DeleteFunc(slices.Clone(s.check.Operations()), func(op *contractcheck.Operation) bool { // those that would wait
		ok := op.Responses.Status(http.StatusOK)
		return op.OperationID == "waitForMessage" || ok != nil && ok.Value.Content["text/event-stream"] != nil
	})
	statuses := map[int]int{}
	for i := range hostileRequests {
		op := ops[i%len(ops)]
		if len(bodyExamples(op)) == 0 && i%5 > 0 { // most variants concern the body
			continue
		}
		r := hostileRequest(rng, op, ids)
		r.Header.Set("Authorization", "Bearer "+s.key)
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
	if statuses[http.StatusBadRequest] < hostileRequests/5 {
		t.Errorf("few requests were refused: %v", statuses)
	}
}
