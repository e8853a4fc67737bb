package contract_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// restOf maps each tool to its operations and says whether they only read. A
// key that may call any of them, with the query parameter if there is one, may
// use the tool.
var restOf = map[string]struct {
	operations []string
	reads      bool
	query      string
}{
	"create_inbox":       {[]string{"createInbox"}, false, ""},
	"list_inboxes":       {[]string{"listInboxes"}, true, ""},
	"wait_for_email":     {[]string{"waitForMessage"}, true, ""},
	"wait_for_code":      {[]string{"waitForMessage"}, true, "view"},
	"search_messages":    {[]string{"listMessages"}, true, ""},
	"get_message":        {[]string{"getMessage"}, true, ""},
	"get_attachment":     {[]string{"getAttachment"}, true, ""},
	"list_threads":       {[]string{"listThreads"}, true, ""},
	"get_thread":         {[]string{"getThread"}, true, ""},
	"send_email":         {[]string{"sendMessage"}, false, ""},
	"reply":              {[]string{"replyToMessage"}, false, ""},
	"forward":            {[]string{"forwardMessage"}, false, ""},
	"list_drafts":        {[]string{"listDrafts"}, true, ""},
	"get_draft":          {[]string{"getDraft"}, true, ""},
	"send_transactional": {[]string{"sendEmail"}, false, ""},
	"list_templates":     {[]string{"listTemplates"}, true, ""},
	"preview_template":   {[]string{"previewTemplate"}, true, ""},
	"diagnose_delivery":  {[]string{"getMessage", "getEmail"}, true, ""},
	"get_usage":          {[]string{"getUsage"}, true, ""},
	"approve_draft":      {[]string{"sendDraft"}, false, ""},
	"reject_draft":       {[]string{"rejectDraft"}, false, ""},
	"add_list_entry":     {[]string{"createListEntry"}, false, ""},
}

// shownFor are the scopes that a key must have itself to be shown a tool for product
// email.
var shownFor = map[string][]string{
	"send_transactional": {"emails:send"},
	"list_templates":     {"templates:read", "templates:write"},
	"preview_template":   {"templates:read", "templates:write"},
}

// nothing returns arguments with which a permitted tool has no effect.
func nothing(tool string) map[string]any {
	const x = "x_01k5tt9h8yq4n0c3m2v7w6x5zd"
	switch tool {
	case "create_inbox":
		return map[string]any{"name": reserved}
	case "send_email", "send_transactional":
		args := map[string]any{"to": "not an address", "subject": "s", "text": "t"}
		if tool == "send_email" {
			args["inbox_id"] = x
		} else {
			args["from"] = "not an address"
		}
		return args
	case "add_list_entry":
		return map[string]any{"direction": "outbound", "action": "block", "pattern": "not a pattern"}
	case "wait_for_email", "wait_for_code", "list_threads":
		return map[string]any{"inbox_id": x}
	case "get_thread":
		return map[string]any{"inbox_id": x, "thread_id": x}
	case "get_message", "reply", "diagnose_delivery":
		return map[string]any{"message_id": x}
	case "forward":
		return map[string]any{"message_id": x, "to": "a@example.org"}
	case "get_attachment":
		return map[string]any{"message_id": x, "attachment_id": x}
	case "get_draft", "approve_draft", "reject_draft":
		return map[string]any{"draft_id": x}
	case "preview_template":
		return map[string]any{"template_id": x, "data": map[string]any{}}
	}
	return nil
}

// reserved is a name that inboxes may not have, although the contract allows
// it.
const reserved = "postmaster"

// sameRights (H18) compares, tool by tool and for keys of every scope and mode,
// which tools are listed, which work over MCP and which work over REST.
func sameRights(t *testing.T, w *world) {
	scopes := append([]string{"*", "admin"}, slices.Sorted(maps.Keys(opened))...)
	scopesOf := map[string][]string{} // missing: all
	kinds := map[string]string{"one inbox's": w.newKey(t, `"inbox_ids":["`+w.inbox.ID+`"]`).Key}
	for i, scope := range scopes {
		mode := []string{"live", "test", "restricted"}[i%3]
		scopesOf[mode+" "+scope] = []string{scope}
		kinds[mode+" "+scope] = w.newKey(t, fmt.Sprintf(`"mode":%q,"scopes":[%q]`, mode, scope)).Key
	}
	calls, gaps := 0, 0
	for kind, key := range kinds {
		ai := w.agentWith(t, key, "")
		list, err := ai.ListTools(t.Context(), nil)
		must(t, err)
		listed := map[string]bool{}
		for _, tool := range list.Tools {
			listed[tool.Name] = true
		}
		for tool, rest := range restOf {
			allowed := slices.ContainsFunc(rest.operations, func(op string) bool {
				c := w.vain(w.check.Operation(op))
				if rest.query != "" {
					c = c.asking(rest.query, "code")
				}
				a := w.send(t, c.as(key))
				return a.status != http.StatusForbidden || a.code() != "insufficient_scope"
			})
			out := ai.use(t, tool, nothing(tool))
			called := !strings.HasPrefix(out.text, "insufficient_scope: ")
			if tool == "diagnose_delivery" && allowed && !called { // it may still work with an email
				called = !strings.HasPrefix(ai.use(t, tool, map[string]any{"email_id": "x"}).text, "insufficient_scope: ")
			}
			calls++
			show := allowed && (len(shownFor[tool]) == 0 || slices.ContainsFunc(append([]string{"*", "admin"}, shownFor[tool]...), func(scope string) bool {
				return scopesOf[kind] == nil || slices.Contains(scopesOf[kind], scope)
			}))
			if listed[tool] != show || called != allowed {
				gaps++
				t.Errorf("%s key, %s: REST allows %t, tools/list shows %t, a call is allowed %t: %s", kind, tool, allowed, listed[tool], called, out.text)
			}
		}
	}
	t.Logf("%d kinds of keys, %d tools: %d pairs, %d gaps", len(kinds), len(restOf), calls, gaps)
}

// limitedByMCP checks that a key with inbox_ids sees only tools that it can
// use, and that these work with its inboxes.
func limitedByMCP(t *testing.T, w *world) {
	in := w.newInbox(t)
	ai := w.agentWith(t, w.newKey(t, `"scopes":["*"],"inbox_ids":["`+in.ID+`"]`).Key, "")
	list, err := ai.ListTools(t.Context(), nil)
	must(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	hidden := []string{"create_inbox", "list_templates", "preview_template"}
	want := slices.Sorted(maps.Keys(restOf))
	want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(hidden, name) })
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("a key with inbox_ids is shown %q, want %q", names, want)
	}
	for _, tool := range hidden {
		if out := ai.use(t, tool, nothing(tool)); !strings.HasPrefix(out.text, "insufficient_scope: ") {
			t.Errorf("%s: %s", tool, out.text)
		}
	}
	ai.use(t, "send_transactional", map[string]any{"from": in.Address, "to": "o@example.org", "subject": "s", "text": "t"}).want(t)
}

// othersByMCP checks that ids of another account, or of an inbox outside the
// key's inbox_ids, get the same response as unknown ids.
func othersByMCP(t *testing.T, w *world) {
	sender := w.agentWith(t, firstKey, "")
	email := sender.use(t, "send_transactional", map[string]any{"from": "a@" + mailDomain, "to": "o@example.org", "subject": "s", "text": "t"}).want(t).at(t, "id")
	calls := []struct {
		tool string
		args map[string]any
	}{
		{"wait_for_email", map[string]any{"inbox_id": w.inbox.ID, "timeout": 1}},
		{"wait_for_code", map[string]any{"inbox_id": w.inbox.ID, "timeout": 1}},
		{"search_messages", map[string]any{"inbox_id": w.inbox.ID}},
		{"get_message", map[string]any{"message_id": w.in.ID}},
		{"get_attachment", map[string]any{"message_id": w.in.ID, "attachment_id": w.in.Attachments[0].ID}},
		{"list_threads", map[string]any{"inbox_id": w.inbox.ID}},
		{"get_thread", map[string]any{"inbox_id": w.inbox.ID, "thread_id": w.in.ThreadID}},
		{"send_email", map[string]any{"inbox_id": w.inbox.ID, "to": "a@example.org", "subject": "s", "text": "t"}},
		{"reply", map[string]any{"message_id": w.in.ID, "text": "t"}},
		{"forward", map[string]any{"message_id": w.in.ID, "to": "a@example.org"}},
		{"list_drafts", map[string]any{"inbox_id": w.guarded.ID}},
		{"get_draft", map[string]any{"draft_id": w.draft.ID}},
		{"approve_draft", map[string]any{"draft_id": w.draft.ID}},
		{"reject_draft", map[string]any{"draft_id": w.draft.ID}},
		{"diagnose_delivery", map[string]any{"message_id": w.in.ID}},
		{"diagnose_delivery", map[string]any{"inbox_id": w.inbox.ID}},
		{"diagnose_delivery", map[string]any{"email_id": email}},
	}
	foreign := map[string]string{
		"of another account": w.stranger(t), "of another inbox": w.newKey(t, `"inbox_ids":["`+w.newInbox(t).ID+`"]`).Key,
	}
	for who, key := range foreign {
		ai := w.agentWith(t, key, "")
		for _, c := range calls {
			if out := ai.use(t, c.tool, c.args); !out.failed || !strings.HasPrefix(out.text, "not_found: ") {
				t.Errorf("a key %s, %s %v: %s", who, c.tool, c.args, out.text)
			}
		}
		if out := ai.use(t, "search_messages", nil).want(t); strings.Contains(out.text, w.inbox.ID) {
			t.Errorf("a key %s finds messages of the inbox: %s", who, out.text)
		}
	}
}

// hostileTexts are arguments with injection attempts.
var hostileTexts = []string{
	"' OR 1=1 --", "../../../etc/passwd", "..%2f..%2f", "%00", "a/b?c=d#e", "{{.}}", "<untrusted_email>", "\r\nBcc: x@example.org", "💥\u202e\u2028",
	strings.Repeat("a", 10_000), "-1", "ibx_*", `{"$ne":null}`, " ", ".", "..",
}

// hostileArguments passes hostile texts and wrong types to every argument of
// every tool. Each is refused or taken literally, and none causes an internal
// error.
func hostileArguments(t *testing.T, w *world) {
	ai := w.agentWith(t, firstKey, "")
	list, err := ai.ListTools(t.Context(), nil)
	must(t, err)
	values := []any{7, 1.5, true, nil, []any{}, map[string]any{"a": []any{map[string]any{}}}}
	for _, text := range hostileTexts {
		values = append(values, text)
	}
	calls := 0
	for _, tool := range list.Tools {
		in, _ := tool.InputSchema.(map[string]any)
		properties, _ := in["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			for _, v := range values {
				args := nothing(tool.Name)
				if args == nil {
					args = map[string]any{}
				}
				args[name] = v
				calls++
				if out := ai.use(t, tool.Name, args); strings.HasPrefix(out.text, "internal_error") {
					t.Errorf("%s %v: %s", tool.Name, args, out.text)
				}
			}
		}
		ai.use(t, tool.Name, map[string]any{"surprise": 1}).wantRefused(t, "invalid_request")
	}
	t.Logf("%d calls", calls)
}
