package handlers_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// wantFault makes a call whose error names a parameter, and says what is wrong with it.
func (s *server) wantFault(t *testing.T, method, path, body, param, message string) response {
	t.Helper()
	res := s.do(t, method, path, body, broken).wantError(t, http.StatusBadRequest, "invalid_request "+param)
	if got, want := res.str(t, "error.message"), param+" "+message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	return res
}

// Errors say what is wrong with a request and where.
func TestBodyErrors(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	send := "/v1/inboxes/" + in.ID + "/messages"
	const keys, inboxes, batch = "/v1/api-keys", "/v1/inboxes", "/v1/emails/batch"
	tests := []struct {
		name, path, body string
		param, message   string // message without the leading param
	}{
		{"a missing field", send, `{"to":"a@b.example","text":"t"}`, "subject", "is required"},
		{"an empty text", send, `{"to":"a@b.example","subject":"","text":"t"}`, "subject", "must not be empty"},
		{"a text that is too long", send, `{"to":"a@b.example","subject":"` + strings.Repeat("ä", 999) + `","text":"t"}`, "subject", "must have at most 998 characters, but has 999"},
		{"a text that is too short", batch, `{"from":"a@b.example","subject":"s","text":"t","recipients":[{"to":"a"}]}`, "recipients[0].to", `is not an email address: "a"`},
		{"a line break in a header field", send, `{"to":"a@b.example","subject":"a\nb","text":"t"}`, "subject", "must not contain line breaks or other control characters"},
		{"a form that is wrong", inboxes, `{"name":"a b"}`, "name", "may only have the letters a to z, digits, hyphens and underscores, and single dots between them"},
		{"a number for a text", send, `{"to":"a@b.example","subject":7,"text":"t"}`, "subject", "must be a string, not a number"},
		{"a text for a boolean", "/v1/webhooks", `{"url":"https://a.example","active":"yes"}`, "active", "must be a boolean, not a string"},
		{"a text for a number", inboxes, `{"retention_days":"7"}`, "retention_days", "must be a whole number, not a string"},
		{"a broken number for a whole one", inboxes, `{"retention_days":7.5}`, "retention_days", "must be a whole number"},
		{"a number that is too large", inboxes, `{"retention_days":3651}`, "retention_days", "must be at most 3650"},
		{"a number that is out of all bounds", inboxes, `{"retention_days":99999999999999999999}`, "retention_days", "must be at most 3650"},
		{"a number that no machine holds", inboxes, `{"metadata":{"a":1e400}}`, "metadata.a", "is out of range: write the number as a string"},
		{"a value outside an enum", inboxes, `{"send_policy":"closed"}`, "send_policy", `is "closed", but must be one of open, reply_only, approval`},
		{"a list for an object", inboxes, `{"metadata":[]}`, "metadata", "must be an object, not an array"},
		{"an empty list", send, `{"to":[],"subject":"s","text":"t"}`, "to", "must not be empty"},
		{"a list that is too long", send, `{"to":[` + strings.Repeat(`"a@b.example",`, 50) + `"a@b.example"],"subject":"s","text":"t"}`, "to", "must have at most 50 items, but has 51"},
		{"an item twice", keys, `{"name":"n","scopes":["read","read"]}`, "scopes", "contains the same item twice, at 0 and 1"},
		{"an item outside an enum", keys, `{"name":"n","scopes":["read","fly"]}`, "scopes[1]", `is "fly", but must be one of *, admin, send, read, codes:read, emails:send, emails:read, contacts:write, contacts:read, templates:write, templates:read, domains:write, domains:read, webhooks:manage, keys:manage`},
		{"an unknown field", send, `{"to":"a@b.example","subject":"s","text":"t","sujbect":"x"}`, "sujbect", "is not a field of this request: did you mean subject?"},
		{"an unknown field that looks like our words", inboxes, `{"unexpected field \"x\"":1}`, `unexpected field "x"`, "is not a field of this request"},
		{"too many names in an item", batch, `{"from":"a@b.example","subject":"s","text":"t","recipients":[{"to":"a@b.example","tags":{"a":"b"}},{"to":"a@b.example","tags":` + strings.ReplaceAll(manyKeys(51), ":1", `:"v"`) + `}]}`, "recipients[1].tags", "must have at most 50 fields, but has 51"},
		{"a name of a wrong form", send, `{"to":"a@b.example","subject":"s","text":"t","headers":{"X Y":"z"}}`, "headers.X Y", "is not an allowed name: a name must have 1 to 76 visible ASCII characters and no colon"},

		{"one address of a wrong type", send, `{"to":7,"subject":"s","text":"t"}`, "to", "must be a string, an object or an array, not a number"},
		{"an address of a wrong type in a list", send, `{"to":["a@b.example",7],"subject":"s","text":"t"}`, "to[1]", "must be a string or an object, not a number"},
		{"a string that is not an address", send, `{"to":"bob","subject":"s","text":"t"}`, "to", `is not an email address: "bob"`},
		{"an address with a space", send, `{"to":"a b@b.example","subject":"s","text":"t"}`, "to", `has an invalid local part: "a b@b.example"`},
		{"an object with an invalid address", send, `{"to":["a@b.example",{"email":"bob"}],"subject":"s","text":"t"}`, "to[1].email", `is not an email address: "bob"`},
		{"an object with an unknown field", send, `{"cc":["a@b.example",{"email":"c@b.example","nmae":"C"}],"to":"a@b.example","subject":"s","text":"t"}`, "cc[1].nmae", "is not a field of this request: did you mean name?"},
		{"a single object with a long name", send, `{"to":{"email":"a@b.example","name":"` + strings.Repeat("n", 101) + `"},"subject":"s","text":"t"}`, "to.name", "must have at most 100 characters, but has 101"},
		{"an attachment without content", send, `{"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":"a","content":""},{"filename":"b"}]}`, "attachments[1].content", "is required"},
		{"an attachment that is not base64", send, `{"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":"a","content":"YQ=="},{"filename":"a","content":"YQ"}]}`, "attachments[1].content", "is not base64 with padding"},
		{"a batch whose second recipient has no address", batch, `{"from":"a@b.example","subject":"s","text":"t","recipients":[{"to":"a@b.example"},{}]}`, "recipients[1].to", "is required"},

		{"a NUL in a text", send, `{"to":"a@b.example","subject":"s","text":"a\u0000b"}`, "text", "must be UTF-8 text without NUL characters"},
		{"a NUL in a name of metadata", inboxes, `{"metadata":{"a\u0000":1}}`, "metadata", "must be UTF-8 text without NUL characters"},
		{"bytes that are not UTF-8", send, "{\"to\":\"a@b.example\",\"subject\":\"s\",\"text\":\"a\xff\"}", "text", "must be UTF-8 text without NUL characters"},
		{"half a character", send, `{"to":"a@b.example","subject":"s","text":"a\ud83d"}`, "text", "must be UTF-8 text without NUL characters"},
		{"the other half of a character", send, `{"to":"a@b.example","subject":"s","text":"\ude00a"}`, "text", "must be UTF-8 text without NUL characters"},
		{"half a character in a list", send, `{"to":[{"email":"a@b.example","name":"\uD800"}],"subject":"s","text":"t"}`, "to[0].name", "must be UTF-8 text without NUL characters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := s.wantFault(t, http.MethodPost, tt.path, tt.body, tt.param, tt.message)
			if _, many := res.get(t, "error.details"); many {
				t.Errorf("one fault has details: %s", res.body)
			}
		})
	}
}

// A character outside the BMP may be written as two escapes.
func TestEscapedCharactersAreTaken(t *testing.T) {
	s := serve(t)
	res := s.do(t, http.MethodPost, "/v1/inboxes", `{"display_name":"\ud83d\ude00\\ud83d","metadata":{"\uD83D\uDE00":"\u00e4"}}`)
	res.want(t, http.StatusCreated)
	res.wantAt(t, "display_name", `"😀\\ud83d"`)
	res.wantAt(t, "metadata", `{"😀":"ä"}`)
}

func TestBodyErrorsListAllFaults(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	body := `{"to":["bob",{"email":"none","name":"a\nb"}],"subject":"","cc":"bob","text":"t"}`
	res := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", body, broken)
	res.wantError(t, http.StatusBadRequest, "invalid_request to[0]")
	res.wantAt(t, "error.details", `[
			{"param":"to[0]","message":"is not an email address: \"bob\""},
			{"param":"to[1].email","message":"is not an email address: \"none\""},
			{"param":"to[1].name","message":"must not contain line breaks or other control characters"},
			{"param":"subject","message":"must not be empty"},
			{"param":"cc","message":"is not an email address: \"bob\""}]`)

	bad := strings.TrimSuffix(strings.Repeat(`"bob",`, 50), ",")
	res = s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":[`+bad+`],"subject":"s","text":"t"}`, broken)
	if n := len(res.want(t, http.StatusBadRequest).strs(t, "error.details", "param")); n != 20 {
		t.Errorf("the error lists %d faults, want the first 20", n)
	}
}

func TestBrokenJSON(t *testing.T) {
	s := serve(t)
	tests := []struct{ name, body, code, message string }{
		{"no JSON", `nope`, "invalid_json", `the body is not valid JSON: invalid character 'o' in literal null (expecting 'u') at line 1, column 2`},
		{"an open object", `{"name":"a"`, "invalid_json", "the body is not valid JSON: it ends too early"},
		{"a comma too many", `{"name":"a",}`, "invalid_json", `the body is not valid JSON: invalid character '}' looking for beginning of object key string at line 1, column 13, after a comma too many`},
		{"no comma", `{"name":"a" "domain":"b"}`, "invalid_json", `the body is not valid JSON: invalid character '"' after object key:value pair at line 1, column 13`},
		{"something after it", `{"name":"a"} x`, "invalid_json", `the body is not valid JSON: invalid character 'x' after top-level value at line 1, column 14`},
		{"the third line", "{\n \"name\":\"ä\",\n  nope}", "invalid_json", `the body is not valid JSON: invalid character 'n' looking for beginning of object key string at line 3, column 3, after a comma too many`},
		{"a control character in a text", "{\"display_name\":\"a\x01\"}", "invalid_json", `the body is not valid JSON: invalid character '\x01' in string literal at line 1, column 19`},
		{"spaces alone", `   `, "invalid_json", "the body is not valid JSON: it ends too early"},
		{"a list", `[]`, "invalid_request", "the body must be a JSON object"},
		{"100,000 open lists", strings.Repeat("[", 100_000), "invalid_json", `the body is not valid JSON: invalid character '[' exceeded max depth at line 1, column 10001`},
		{"100,000 nested lists in a field", `{"metadata":{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`, "invalid_json", `the body is not valid JSON: invalid character '[' exceeded max depth at line 1, column 10016`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := s.do(t, http.MethodPost, "/v1/inboxes", tt.body, broken).want(t, http.StatusBadRequest)
			if code, message := res.str(t, "error.code"), res.str(t, "error.message"); code != tt.code || message != tt.message {
				t.Errorf("%s: %s; want %s: %s", code, message, tt.code, tt.message)
			}
		})
	}
}

func TestParameterErrors(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	messages := "/v1/inboxes/" + in.ID + "/messages"
	tests := []struct {
		name, path     string
		param, message string
	}{
		{"a limit of 101", "/v1/inboxes?limit=101", "limit", "must be at most 100"},
		{"an empty limit", "/v1/inboxes?limit=", "limit", "must be a whole number"},
		{"two limits", "/v1/inboxes?limit=1&limit=2", "limit", "must be given only once"},
		{"a long cursor", "/v1/inboxes?cursor=" + strings.Repeat("a", 201), "cursor", "must have at most 200 characters, but has 201"},
		{"a foreign cursor", "/v1/inboxes?cursor=abc", "cursor", "must come from a previous page of this list, with the same filters"},
		{"a plus that a query makes a space", messages + "?since=2026-01-01T00:00:00+01:00", "since", `has a space in its offset: write + as %2B in a URL: "2026-01-01T00:00:00 01:00"`},
		{"a NUL in from", messages + "?from=a%00b", "from", "must be UTF-8 text without NUL characters"},
		{"an empty search", messages + "?q=", "q", "must not be empty"},
		{"a tag of a wrong form", "/v1/emails?tag=" + url.QueryEscape("nocolon"), "tag", "must have the form name:value"},
		{"an event type of a list", "/v1/events/stream?events=email.sent,email.lost", "events[1]", `is "email.lost", but must be one of email.queued, email.scheduled, email.sent, email.delivered, email.opened, email.clicked, email.bounced, email.complained, email.delivery_delayed, email.suppressed, email.failed, email.cancelled, contact.unsubscribed, suppression.created, suppression.deleted, domain.health.degraded, message.received, message.quarantined, message.blocked, message.queued, message.sent, message.delivered, message.bounced, message.complained, message.failed, draft.created…`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := s.do(t, http.MethodGet, tt.path, "", broken).wantError(t, http.StatusBadRequest, "invalid_request "+tt.param)
			if got, want := res.str(t, "error.message"), tt.param+" "+tt.message; got != want {
				t.Errorf("message %q, want %q", got, want)
			}
		})
	}
	t.Run("a long idempotency key", func(t *testing.T) {
		t.Parallel()
		s.do(t, http.MethodPost, "/v1/inboxes", `{}`, broken, with("Idempotency-Key", strings.Repeat("k", 256))).
			wantError(t, http.StatusBadRequest, "invalid_request Idempotency-Key")
	})
	t.Run("an idempotency key that is not UTF-8", func(t *testing.T) {
		t.Parallel()
		s.do(t, http.MethodPost, "/v1/inboxes", `{}`, broken, with("Idempotency-Key", "k\xff")).
			wantError(t, http.StatusBadRequest, "invalid_request Idempotency-Key")
	})
}

// TestUnknownParametersAreRefused: a misspelled filter must not return everything.
func TestUnknownParametersAreRefused(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	inbox := "/v1/inboxes/" + in.ID
	tests := []struct{ name, method, path, body, param, message string }{
		{"a misspelled filter", "GET", inbox + "/messages?form=a@b.example", "", "form", "is not a parameter of this request: did you mean from?"},
		{"another form of a name", "GET", "/v1/messages?inboxId=x", "", "inboxId", "is not a parameter of this request: did you mean inbox_id?"},
		{"capitals", "GET", "/v1/inboxes?Limit=1", "", "Limit", "is not a parameter of this request: did you mean limit?"},
		{"a name like none", "GET", "/v1/inboxes?sort=asc", "", "sort", "is not a parameter of this request"},
		{"the stream", "GET", "/v1/events/stream?event=email.sent", "", "event", "is not a parameter of this request: did you mean events?"},
		{"the alias of keys", "GET", "/v1/keys?limits=1", "", "limits", "is not a parameter of this request: did you mean limit?"},
		{"a name that is not UTF-8", "GET", "/v1/inboxes?x%ff=1", "", "x\uFFFD", "is not a parameter of this request"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s.wantFault(t, tt.method, tt.path, tt.body, tt.param, tt.message)
		})
	}
	t.Run("several", func(t *testing.T) {
		t.Parallel()
		res := s.do(t, http.MethodGet, "/v1/inboxes?limt=1&cursr=x&limit=1", "", broken).wantError(t, http.StatusBadRequest, "invalid_request cursr")
		if got := res.str(t, "error.details.1.param"); got != "limt" {
			t.Errorf("the second detail is about %q, want limt", got)
		}
	})
	t.Run("a download link keeps working", func(t *testing.T) {
		t.Parallel()
		s.do(t, http.MethodGet, "/v1/files/x?utm_source=chat", "", broken).wantError(t, http.StatusForbidden, "link_invalid")
	})
}
