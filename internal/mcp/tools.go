package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postroom/postroom/gen"
)

const (
	waitTool = "wait_for_email"
	codeTool = "wait_for_code"
	// waitDefault and waitMost are in seconds. Clients time out tool calls after
	// a minute.
	waitDefault, waitMost = 45, 55
)

var (
	yes, no = true, false
	// reads, writes and sends are annotations for clients that ask their users.
	// Only sends reaches beyond this server.
	reads  = sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no}
	waits  = sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &yes}
	writes = sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}
	sends  = sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &yes}
	// decides annotates tools that end a draft.
	decides = sdk.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &yes}
)

var timeoutArgument = schema{
	"type": "integer", "minimum": 1, "maximum": waitMost, "default": waitDefault, "description": "Seconds to wait.",
}

var aDraft = map[string]schema{"draft_id": {"type": "string", "maxLength": 40, "description": "The draft, drf_…"}}

// tools returns the table of tools.
func tools() []*tool {
	return append(append(readingTools(), sendingTools()...), otherTools()...)
}

func readingTools() []*tool {
	return []*tool{
		{
			name: "create_inbox", title: "Create an inbox", operation: gen.CreateInboxOperation, hints: writes,
			left:        []string{"aliases", "catch_all", "limits", "quarantine"},
			description: "Creates an inbox with an email address. Without a name the address is random.",
		},
		{
			name: "list_inboxes", title: "List inboxes", operation: gen.ListInboxesOperation, hints: reads,
			description: "Lists the inboxes that this key can access, newest first.",
		},
		{
			name: waitTool, title: "Wait for a message", operation: gen.WaitForMessageOperation, hints: waits, mail: true, show: showWait, run: wait,
			description: "Waits for a matching message, and returns it with its verification codes and links. " +
				"A message of the last minute counts too. When it times out, call again.",
			left:    []string{"view", "safety"},
			changed: map[string]schema{"timeout": timeoutArgument},
			trim:    func(a map[string]any) { trimMessage(object(a["message"])) },
		},
		{
			name: codeTool, title: "Wait for a verification code", operation: gen.WaitForMessageOperation, hints: waits, codes: true, run: waitForCode,
			description: "Waits for a verification code or a sign-in link and returns it without the message: nothing else of the sender is shown. " +
				"The newest code wins, and each is returned once. older: matches before since. Do not open action_link without asking if same_site is false.",
			left:    []string{"view", "direction", "safety"},
			changed: map[string]schema{"timeout": timeoutArgument},
		},
		{
			name: "search_messages", title: "Search messages", operation: gen.ListMessagesOperation, hints: reads, mail: true, show: listOf("message", fence.message),
			description: "Finds messages by words, sender, subject, label, time or status, newest first. Shows the start of each; get_message returns all.",
			left:        []string{"include", "to", "until", "safety"}, changed: map[string]schema{"label": {"type": "string"}}, trim: eachMessage("data", trimListed),
		},
		{
			name: "get_message", title: "Read a message", operation: gen.GetMessageOperation, hints: reads, mail: true, show: showOne,
			left:        []string{"view"},
			description: "Returns a message with its text, verification codes, links and attachments, and for a sent message its delivery status.",
			trim:        trimMessage,
		},
		{
			name: "get_attachment", title: "Get an attachment", operation: gen.GetAttachmentOperation, hints: reads, mail: true, show: showAttachment,
			description: "Returns a download link for an attachment, valid for 15 minutes, with its name, type and size.",
		},
		{
			name: "list_threads", title: "List threads", operation: gen.ListThreadsOperation, hints: reads, mail: true, show: listOf("thread", fence.thread), left: []string{"label"},
			description: "Lists the threads of an inbox, latest activity first.",
		},
		{
			name: "get_thread", title: "Read a thread", operation: gen.GetThreadOperation, hints: reads, mail: true, show: showThread,
			description: "Returns a thread with its messages, oldest first.",
			trim:        eachMessage("messages", trimMessage),
		},
		{
			name: "list_drafts", title: "List drafts", operation: gen.ListDraftsOperation, hints: reads, mail: true, show: listOf("draft", fence.draft), run: listDrafts,
			description: `Lists drafts. The status "pending" is the approval queue.`,
			changed:     map[string]schema{"inbox_id": {"type": "string", "maxLength": 40}},
		},
		{
			name: "get_draft", title: "Read a draft", operation: gen.GetDraftOperation, hints: reads, mail: true, show: showDraft, changed: aDraft,
			description: "Returns a draft in full, as it would be sent.",
		},
	}
}

func sendingTools() []*tool {
	return []*tool{
		{
			name: "send_email", title: "Send an email", operation: gen.SendMessageOperation, hints: sends, mail: true, once: true,
			show: showSent, trim: trimSent,
			description: "Sends a new message from an inbox. Give text, html or both. With the policy \"approval\" it becomes a draft. " +
				"Repeated within 10 seconds, it sends once.",
		},
		{
			name: "reply", title: "Reply to a message", operation: gen.ReplyToMessageOperation, hints: sends, mail: true, once: true,
			show: showSent, trim: trimSent,
			description: "Replies to a message in its thread: to its sender, or with reply_all to all recipients. Give text, html or both. " +
				"Repeated within 10 seconds, it sends once.",
		},
		{
			name: "forward", title: "Forward a message", operation: gen.ForwardMessageOperation, hints: sends, mail: true, once: true,
			show: showSent, trim: trimSent,
			description: "Forwards a message with its attachments; text is a note on top. Repeated within 10 seconds, it sends once.",
		},
		{
			name: "send_transactional", title: "Send product email", operation: gen.SendEmailOperation, hints: sends, mail: true, once: true,
			forScopes: []string{"emails:send"}, show: showEmail, left: []string{"headers", "idempotencyKey", "reply_to", "scheduled_at"},
			changed: map[string]schema{"tags": {"type": "object"}, "replyTo": {"type": "string"}, "from": {"type": "string", "description": ""}},
			description: "Sends an email from a verified domain, with content or a template. " +
				"Repeated within 10 seconds, it sends once.",
		},
		{
			name: "approve_draft", title: "Approve a draft", operation: gen.SendDraftOperation, hints: decides, mail: true, once: true,
			changed: aDraft, show: showSent, trim: trimSent,
			description: "Approves and sends a pending draft. With version, it is sent only if the draft was not edited since.",
		},
		{
			name: "reject_draft", title: "Reject a draft", operation: gen.RejectDraftOperation, hints: decides, mail: true, show: showDraft, once: true, changed: aDraft,
			description: "Rejects a pending draft. It is never sent.",
		},
	}
}

func otherTools() []*tool {
	return []*tool{
		{
			name: "list_templates", title: "List templates", operation: gen.ListTemplatesOperation, hints: reads,
			forScopes:   []string{"templates:read", "templates:write"},
			description: "Lists the templates for send_transactional.",
		},
		{
			name: "preview_template", title: "Preview a template", operation: gen.PreviewTemplateOperation, hints: reads,
			forScopes:   []string{"templates:read", "templates:write"},
			renamed:     map[string]string{"id": "template_id"},
			description: "Renders a template with data, and lists missing variables.",
		},
		{
			name: "get_usage", title: "Get usage", operation: gen.GetUsageOperation, hints: reads,
			description: "Returns the usage and limits, and whether sending is paused.",
		},
		{
			name: "add_list_entry", title: "Block addresses", operation: gen.CreateListEntryOperation, hints: writes, left: []string{"idempotency_key"},
			description: "Blocks mail to or from a@b, *@b or *@*.b, or makes it wait for a person. Only a person can undo this.",
			changed: map[string]schema{
				"direction": {"type": "string", "enum": []any{"inbound", "outbound"}, "description": ""},
				"action":    {"type": "string", "enum": []any{"block", "approve"}},
				"pattern":   {"type": "string"},
				"inbox_id":  {"type": "string"},
			},
		},
		diagnoseTool(),
	}
}
