package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/postroom/postroom/internal/dropin"
	"github.com/postroom/postroom/internal/waittest"
)

// vendorCall is one request to the API of a vendor. LATEST in its path is the ID of the
// newest message, and FILE that of the file attached to it. EMAIL is the ID of an email, TEMPLATE
// that of a template, NEW that of what the last POST made, and LATER a time in an hour.
type vendorCall struct {
	name, method, path, body string
	status                   int
	says                     string // in the response
	wrong                    bool   // the request does not follow the file
}

// vendorCalls have a call of every operation in the files openapi.yaml of the vendors.
var vendorCalls = map[string][]vendorCall{
	"mailosaur": {
		{"list", "GET", "/api/messages?server=abcd1234&page=0&itemsPerPage=10&receivedAfter=2020-01-31T08:00:00Z&dir=Received", "", 200, `"subject":"Code"`, false},
		{"list without a server", "GET", "/api/messages", "", 400, "server is required", true},
		{"list with another parameter", "GET", "/api/messages?server=abcd1234&sort=up", "", 400, "sort is not supported", false},
		{"list a wrong page", "GET", "/api/messages?server=abcd1234&page=-1", "", 400, "page must be a number from 0 to 1000", true},
		{"search", "POST", "/api/messages/search?server=abcd1234", `{"subject":"code","sentTo":"ana@abcd1234.mailosaur.net","match":"ALL"}`, 200, `"subject":"Code"`, false},
		{"search for nothing", "POST", "/api/messages/search?server=abcd1234", `{}`, 400, "criteria needs", true},
		{"search with an unknown field", "POST", "/api/messages/search?server=abcd1234", `{"sender":"x"}`, 400, `{"description":"sender is not supported by Postroom: leave it out"}],"field":"sender"`, true},
		{"search without JSON", "POST", "/api/messages/search?server=abcd1234", `{`, 400, "not valid JSON", true},
		{"message", "GET", "/api/messages/LATEST", "", 200, `"codes":[{"value":"482913"}]`, false},
		{"no message", "GET", "/api/messages/msg_none", "", 404, "looks mistyped", false},
		{"raw", "GET", "/api/files/email/LATEST", "", 200, "Subject: Code", false},
		{"file", "GET", "/api/files/attachments/LATEST.FILE", "", 200, "The terms", false},
		{"reply", "POST", "/api/messages/LATEST/reply", `{"text":"Thank you."}`, 200, `"subject":"Re: Code"`, false},
		{"reply with an unknown field", "POST", "/api/messages/LATEST/reply", `{"text":"x","subject":"x"}`, 400, "subject is not supported", true},
		{"reply to what is not an address", "POST", "/api/messages/LATEST/reply", `{"text":"x","cc":"nobody"}`, 400, "cc must be email addresses", false},
		{"forward", "POST", "/api/messages/LATEST/forward", `{"to":"ben@acme.test","text":"See below."}`, 200, `"email":"ben@acme.test"`, false},
		{"servers", "GET", "/api/servers", "", 200, `"id":"postroom"`, false},
		{"server", "GET", "/api/servers/abcd1234", "", 200, `"messages":1`, false},
		{"delete", "DELETE", "/api/messages/LATEST", "", 204, "", false},
		{"delete all", "DELETE", "/api/messages?server=abcd1234", "", 204, "", false},
	},
	"mailpit": {
		{"info", "GET", "/api/v1/info", "", 200, `"Messages":1`, false},
		{"list", "GET", "/api/v1/messages?start=0&limit=5", "", 200, `"Subject":"Code"`, false},
		{"list a wrong page", "GET", "/api/v1/messages?start=x", "", 400, "start must be a number", true},
		{"search", "GET", "/api/v1/search?query=subject:code&tz=UTC", "", 200, `"messages_count":1`, false},
		{"search for what is not there", "GET", "/api/v1/search?query=is:starred", "", 422, "the search is:starred is not supported", false},
		{"message", "GET", "/api/v1/message/latest", "", 200, `"FileName":"terms.txt"`, false},
		{"no message", "GET", "/api/v1/message/msg_none", "", 404, "looks mistyped", false},
		{"headers", "GET", "/api/v1/message/LATEST/headers", "", 200, `"Subject":["Code"]`, false},
		{"raw", "GET", "/api/v1/message/LATEST/raw", "", 200, "Subject: Code", false},
		{"part", "GET", "/api/v1/message/LATEST/part/FILE", "", 200, "The terms", false},
		{"mark", "PUT", "/api/v1/messages", `{"IDs":["LATEST"],"Read":true}`, 200, "ok", false},
		{"tag", "PUT", "/api/v1/tags", `{"IDs":["LATEST"],"Tags":["x"]}`, 200, "ok", false},
		{"tags", "GET", "/api/v1/tags", "", 200, `["x"]`, false},
		{"tag nothing", "PUT", "/api/v1/tags", `{"IDs":[]}`, 400, "IDs is required", true},
		{"search for read and tagged", "GET", "/api/v1/search?query=is:read+tag:X", "", 200, `"messages_count":1`, false},
		{"delete one", "DELETE", "/api/v1/messages", `{"IDs":["LATEST"]}`, 200, "ok", false},
		{"delete found", "DELETE", "/api/v1/search?query=x", "", 200, "ok", false},
		{"delete all", "DELETE", "/api/v1/messages", "", 200, "ok", false},
		{"send", "POST", "/api/v1/send", `{"From":{"Email":"a@acme.test"},"To":[{"Email":"b@acme.test"}],"Subject":"x","Text":"x"}`, 200, `"ID":"em_`, false},
		{"send with an unknown field", "POST", "/api/v1/send", `{"From":{"Email":"a@acme.test"},"To":[],"Tags":["x"]}`, 422, "Tags is not supported", true},
	},
	"resend": {
		{"send", "POST", "/emails", `{"from":"Acme <hello@acme.test>","to":"ann@acme.test","reply_to":["a@acme.test"],"subject":"Later","text":"x","scheduled_at":"LATER","attachments":[{"content":[65],"filename":"a"}]}`, 200, `"id":"em_`, false},
		{"send with an unknown field", "POST", "/emails", `{"from":"a@acme.test","to":"b@acme.test","subject":"x","text":"x","send_at":"x"}`, 422, `"message":"send_at is not supported`, true},
		{"send at a time in words", "POST", "/emails", `{"from":"a@acme.test","to":"b@acme.test","subject":"x","text":"x","scheduled_at":"in 1 min"}`, 422, "scheduled_at ", true},
		{"send without a sender", "POST", "/emails", `{"to":"b@acme.test"}`, 422, `"name":"missing_required_field"`, true},
		{"send without JSON", "POST", "/emails", `{`, 422, `"name":"validation_error"`, true},
		{"list emails", "GET", "/emails?limit=1", "", 200, `"has_more":true`, false},
		{"list after what is not there", "GET", "/emails?after=em_none", "", 404, `"name":"not_found"`, false},
		{"list with another parameter", "GET", "/emails?before=x", "", 422, "before is not supported", false},
		{"email", "GET", "/emails/EMAIL", "", 200, `"last_event":"delivered"`, false},
		{"reschedule what is sent", "PATCH", "/emails/EMAIL", `{"scheduled_at":"LATER"}`, 409, "no longer scheduled", false},
		{"reschedule", "PATCH", "/emails/NEW", `{"scheduled_at":"LATER"}`, 200, `"object":"email"`, false},
		{"cancel", "POST", "/emails/NEW/cancel", "", 200, `"object":"email"`, false},
		{"batch", "POST", "/emails/batch", `[{"from":"a@acme.test","to":["b@acme.test"],"subject":"x","html":"x"}]`, 200, `{"data":[{"id":"em_`, false},
		{"received", "GET", "/emails/receiving?limit=1", "", 200, `"received_for"`, false},
		{"received email", "GET", "/emails/receiving/LATEST?html_format=cid", "", 200, `"subject":"Code"`, false},
		{"received email in another form", "GET", "/emails/receiving/LATEST?html_format=data_uri", "", 422, "html_format", true},
		{"attachments", "GET", "/emails/receiving/LATEST/attachments", "", 200, `"filename":"terms.txt"`, false},
		{"attachment", "GET", "/emails/receiving/LATEST/attachments/FILE", "", 200, `"size":9`, false},
		{"no attachment", "GET", "/emails/receiving/LATEST/attachments/att_none", "", 404, "not_found", false},
		{"create a domain", "POST", "/domains", `{"name":"mail.acme.example"}`, 201, `"record":"DKIM"`, false},
		{"create a domain in a region", "POST", "/domains", `{"name":"mail.acme.example","region":"us-east-1"}`, 422, "region is not supported", true},
		{"domains", "GET", "/domains", "", 200, "mail.acme.example", false},
		{"domain", "GET", "/domains/NEW", "", 200, `"records"`, false},
		{"verify a domain", "POST", "/domains/NEW/verify", "", 200, `"object":"domain"`, false},
		{"delete a domain", "DELETE", "/domains/NEW", "", 200, `"deleted":true`, false},
		{"create a webhook", "POST", "/webhooks", `{"endpoint":"http://127.0.0.1:9/","events":["email.sent"]}`, 201, `"signing_secret":"whsec_`, false},
		{"create a webhook without an address", "POST", "/webhooks", `{"events":["email.sent"]}`, 422, "endpoint is required", true},
		{"reschedule to a time in words", "PATCH", "/emails/EMAIL", `{"scheduled_at":"in 1 min"}`, 422, "scheduled_at ", true},
		{"create a webhook for what is not there", "POST", "/webhooks", `{"endpoint":"http://127.0.0.1:9/","events":["topic.created"]}`, 422, "no event topic.created", true},
		{"webhooks", "GET", "/webhooks", "", 200, `"events":["email.sent"]`, false},
		{"webhook", "GET", "/webhooks/NEW", "", 200, `"status":"enabled"`, false},
		{"update a webhook", "PATCH", "/webhooks/NEW", `{"status":"disabled"}`, 200, `"object":"webhook"`, false},
		{"rotate a secret", "POST", "/webhooks/NEW/signing-secret/rotate", "", 200, `"signing_secret":"whsec_`, false},
		{"delete a webhook", "DELETE", "/webhooks/NEW", "", 200, `"deleted":true`, false},
		{"create a template", "POST", "/templates", `{"name":"order","subject":"{{{A}}}","html":"{{{A}}}","variables":[{"key":"A","type":"string"}]}`, 201, `"object":"template"`, false},
		{"create a template with an alias", "POST", "/templates", `{"name":"order","html":"x","alias":"o"}`, 422, "alias is not supported", true},
		{"templates", "GET", "/templates", "", 200, `"status":"published"`, false},
		{"template", "GET", "/templates/TEMPLATE", "", 200, `"name":"welcome"`, false},
		{"update a template", "PATCH", "/templates/TEMPLATE", `{"text":"Hello {{name}}"}`, 200, `"object":"template"`, false},
		{"publish a template", "POST", "/templates/TEMPLATE/publish", "", 200, `"object":"template"`, false},
		{"delete a template", "DELETE", "/templates/TEMPLATE", "", 200, `"deleted":true`, false},
		{"audiences", "GET", "/audiences", "", 200, `"id":"contacts"`, false},
		{"audience", "GET", "/audiences/contacts", "", 200, `"id":"contacts"`, false},
		{"another audience", "GET", "/audiences/x", "", 404, "other than the one with the ID contacts", false},
		{"create a contact", "POST", "/contacts", `{"email":"ann@acme.test","unsubscribed":true,"properties":{"plan":"team"}}`, 201, `"object":"contact"`, false},
		{"contacts", "GET", "/contacts", "", 200, `"unsubscribed":true`, false},
		{"contacts of the audience", "GET", "/audiences/contacts/contacts", "", 200, `"email":"ann@acme.test"`, false},
		{"contact", "GET", "/contacts/ann@acme.test", "", 200, `"plan":{"type":"string","value":"team"}`, false},
		{"update a contact", "PATCH", "/contacts/ann@acme.test", `{"unsubscribed":false,"properties":{"age":7}}`, 200, `"object":"contact"`, false},
		{"delete a contact", "DELETE", "/contacts/ann@acme.test", "", 200, `"deleted":true`, false},
	},
	"sendgrid": {
		{"send", "POST", "/v3/mail/send", `{"from":{"email":"a@acme.test"},"personalizations":[{"to":[{"email":"b@acme.test"}]}],"subject":"x","content":[{"type":"text/plain","value":"x"}]}`, 202, "", false},
		{"send to nobody", "POST", "/v3/mail/send", `{"from":{"email":"a@acme.test"},"personalizations":[]}`, 400, "personalizations", true},
		{"send with an unknown field", "POST", "/v3/mail/send", `{"mail_settings":{}}`, 422, `"field":"mail_settings"`, true},
	},
	"postmark": {
		{"send", "POST", "/email", `{"From":"a@acme.test","To":"B <b@acme.test>","Subject":"x","TextBody":"x","Tag":"t"}`, 200, `"ErrorCode":0`, false},
		{"send to nobody", "POST", "/email", `{"From":"a@acme.test","To":"","Subject":"x","TextBody":"x"}`, 422, `"ErrorCode":300`, false},
		{"send with an unknown field", "POST", "/email", `{"InlineCss":true}`, 422, "InlineCss is not supported", true},
		{"send with a template that is missing", "POST", "/email/withTemplate", `{"From":"a@acme.test","To":"b@acme.test","TemplateAlias":"none","TemplateModel":{}}`, 422, "template not found", false},
		{"send with a template", "POST", "/email/withTemplate", `{"From":"a@acme.test","To":"b@acme.test","TemplateAlias":"welcome","TemplateModel":{"name":"Ben"}}`, 200, `"MessageID":"em_`, false},
		{"batch", "POST", "/email/batch", `[{"From":"a@acme.test","To":"b@acme.test","Subject":"x","TextBody":"x"},{"From":"","To":""}]`, 200, `"ErrorCode":300`, false},
		{"batch with templates", "POST", "/email/batchWithTemplates", `{"Messages":[{"From":"a@acme.test","To":"b@acme.test","TemplateAlias":"welcome","TemplateModel":{"name":"Ben"}}]}`, 200, `"ErrorCode":0`, false},
		{"batch of nothing", "POST", "/email/batchWithTemplates", `{"Messages":[]}`, 422, "1 to 500 messages", true},
	},
}

// TestVendorAPIsFollowTheirFiles calls the API of each vendor in `postroom dev`, with a key
// of the vendor, and compares requests and responses with its OpenAPI file.
func TestVendorAPIsFollowTheirFiles(t *testing.T) {
	t.Parallel()
	for vendor, calls := range vendorCalls {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			doc, err := openapi3.NewLoader().LoadFromFile("../../internal/dropin/" + vendor + "/openapi.yaml")
			if err != nil {
				t.Fatal(err)
			}
			router, err := legacy.NewRouter(doc)
			if err != nil {
				t.Fatal(err)
			}
			s := dev(t)
			words, newest := s.mailForVendors(t), ""
			succeeded := map[string]bool{}
			for _, c := range calls {
				op, made := s.vendorCall(t, router, vendor, c, strings.NewReplacer(append(words, "NEW", newest)...))
				newest = cmp.Or(made, newest)
				succeeded[op] = succeeded[op] || c.status < 300
			}
			for _, path := range doc.Paths.Map() {
				for _, op := range path.Operations() {
					if !succeeded[op.OperationID] {
						t.Errorf("no call of %s succeeds", op.OperationID)
					}
				}
			}
		})
	}
}

// mailForVendors sends an email and makes a template. It returns what replaces the words in
// vendorCalls.
func (s *served) mailForVendors(t *testing.T) []string {
	t.Helper()
	_, template := s.call(t, "", http.MethodPost, "/v1/templates", `{"name":"welcome","subject":"Welcome {{name}}","text":"Hello"}`)
	_, email := s.call(t, "", http.MethodPost, "/v1/emails", `{"from":"Acme <hello@acme.test>","to":"ana@abcd1234.mailosaur.net","subject":"Code",
		"html":"<p>Your code is <b>482913</b></p>","attachments":[{"filename":"terms.txt","content":"VGhlIHRlcm1z"}]}`)
	var received []any
	waittest.Until(t, "the mail arrives", func() bool {
		_, list := s.call(t, "", http.MethodGet, "/v1/messages?direction=in", "")
		received, _ = list["data"].([]any)
		return len(received) == 1
	})
	m := received[0].(map[string]any)
	return []string{"EMAIL", email["id"].(string), "TEMPLATE", template["id"].(string), "LATER", time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		"LATEST", m["id"].(string), "FILE", m["attachments"].([]any)[0].(map[string]any)["id"].(string)}
}

// vendorCall makes a call. It returns its operation, and the ID of what a POST has made.
func (s *served) vendorCall(t *testing.T, router routers.Router, vendor string, c vendorCall, fill *strings.Replacer) (op, made string) {
	t.Helper()
	body := []byte(fill.Replace(c.body))
	req, err := http.NewRequestWithContext(t.Context(), c.method, s.api+"/"+vendor+fill.Replace(c.path), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if vendor == "postmark" {
		req.Header.Set("X-Postmark-Server-Token", "any")
	} else {
		req.SetBasicAuth("any", "")
	}
	req.Close = true // a connection that is kept would have a second of grace at shutdown
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != c.status || !strings.Contains(string(got), c.says) {
		t.Errorf("%s: %d %s, want %d and %q", c.name, res.StatusCode, got, c.status, c.says)
	}
	req.URL.Scheme, req.URL.Host = "", ""
	req.Body = io.NopCloser(bytes.NewReader(body))
	route, params, err := router.FindRoute(req)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	in := &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateRequest(t.Context(), in); (err != nil) != c.wrong {
		t.Errorf("%s: the request: %v", c.name, err)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.StatusCode, Header: res.Header, Options: in.Options}
	if err := openapi3filter.ValidateResponse(t.Context(), out.SetBodyBytes(got)); err != nil {
		t.Errorf("%s: the response: %v", c.name, err)
	}
	var created struct {
		ID string `json:"id"`
	}
	if c.method == http.MethodPost && res.StatusCode < 300 {
		_ = json.Unmarshal(got, &created) // not all have one
	}
	return route.Operation.OperationID, created.ID
}

// TestVendorAPIsAreOffUnlessNamed checks keys, the log of requests and limits of inboxes
// through the API of a vendor.
func TestVendorAPIsAreOffUnlessNamed(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "POSTROOM_DROPIN=mailosaur,mailpit", "POSTROOM_ACCESS_LOG=on")
	get := func(path, user, password string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.api+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(user, password)
		req.Close = true
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(body)
	}
	_, mine := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"mine"}`)
	_, other := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"other"}`)
	var foreign string // the message that a key for one inbox may not see
	for _, in := range []map[string]any{mine, other} {
		status, out := s.call(t, s.key, http.MethodPost, "/v1/inboxes/"+in["id"].(string)+"/simulate", `{"from":"a@acme.test","subject":"Hi","text":"x"}`)
		if status != http.StatusCreated {
			t.Fatalf("simulate: %d %v", status, out)
		}
		foreign = out["id"].(string)
	}
	keyFor := func(scope string) string {
		_, made := s.call(t, s.key, http.MethodPost, "/v1/api-keys", `{"name":"one","scopes":["`+scope+`"],"inbox_ids":["`+mine["id"].(string)+`"]}`)
		return made["key"].(string)
	}
	one, sends := keyFor("read"), keyFor("send")
	for _, tt := range []struct {
		name, path, user, password string
		status                     int
		says                       string
	}{
		{"the key as the user name", "/mailpit/api/v1/info", s.key, "", 200, `"Messages":2`},
		{"the key as the password", "/mailpit/api/v1/info", "postroom", s.key, 200, `"Messages":2`},
		{"a key for one inbox", "/mailpit/api/v1/info", one, "", 200, `"Messages":1`},
		{"a key for one inbox, at another door", "/mailosaur/api/servers/postroom", one, "", 200, `"messages":1`},
		{"the message of another inbox", "/mailosaur/api/messages/" + foreign, one, "", 404, `"not found"`},
		{"the file of another inbox", "/mailosaur/api/files/email/" + foreign, one, "", 404, `"not found"`},
		{"the source of another inbox", "/mailpit/api/v1/message/" + foreign + "/raw", one, "", 404, "not found"},
		{"a key that only sends", "/mailosaur/api/messages?server=postroom", sends, "", 403, "lacks the scope read"},
		{"an address that ends in a slash", "/mailpit//api/v1/info", one, "", 200, `"Messages":1`},
		{"an ID with a slash", "/mailpit/api/v1/message/a%2Fb", one, "", 404, "begins with msg_"},
		{"a wrong key", "/mailpit/api/v1/info", "sk_live_wrong", "", 401, `{"Error":"this API key is wrong: no key has this value"}`},
		{"no key", "/mailpit/api/v1/info", "", "", 401, `"Error"`},
		{"a vendor that is not named", "/resend/emails", s.key, "", 404, "route_not_found"},
	} {
		if status, body := get(tt.path, tt.user, tt.password); status != tt.status || !strings.Contains(body, tt.says) {
			t.Errorf("%s: %d %s, want %d and %q", tt.name, status, body, tt.status, tt.says)
		}
	}
	for _, want := range []string{"path=/mailpit/api/v1/info", "path=/v1/messages"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, s.log)
		}
	}
	if text := refused(t, t.TempDir(), []string{"POSTROOM_DROPIN=mailpit,sendgrid"}); !strings.Contains(text, `"sendgrid": only `) {
		t.Errorf("a vendor for development: %s", text)
	}
	if text := refused(t, t.TempDir(), []string{"POSTROOM_DROPIN=mailpi"}); !strings.Contains(text, `"mailpi": no such API; there are mailosaur, mailpit, resend`) {
		t.Errorf("a wrong name: %s", text)
	}
}

// TestVendorsHaveFilesAndCalls compares the list of vendors, their folders and vendorCalls.
func TestVendorsHaveFilesAndCalls(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../internal/dropin/*/openapi.yaml")
	if err != nil || len(files) != len(dropin.All()) {
		t.Errorf("%d files openapi.yaml of %d vendors (%v)", len(files), len(dropin.All()), err)
	}
	for _, name := range dropin.All() {
		if vendorCalls[name] == nil {
			t.Errorf("no calls of %s", name)
		}
	}
}
