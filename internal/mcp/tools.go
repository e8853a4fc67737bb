package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postroom/postroom/gen"
)

const (
	waitTool = "wait_for_email"
	// waitDefault and waitMost are in seconds: clients give up on a tool after a
	// minute.
	waitDefault, waitMost = 45, 55
)

var (
	yes, no = true, false
	// reads, writes and sends are hints for clients that ask their users: what a
	// tool reads is this server's alone, what it sends goes out into the world.
	reads  = sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no}
	waits  = sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &yes}
	writes = sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}
	sends  = sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &yes}
	// decides ends a draft.
	decides = sdk.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &yes}
)

var aDraft = map[string]schema{"draft_id": {"type": "string", "maxLength": 40, "description": "The draft, drf_…"}}

// tools is the table of the tools.
func tools() []*tool {
	return append(append(readingTools(), sendingTools()...), otherTools()...)
}

func readingTools() []*tool {
	return []*tool{
		{
			name: "create_inbox", title: "Create an inbox", operation: gen.CreateInboxOperation, hints: writes,
			description: "Makes an email address that receives at once. All arguments are optional; without a name the address is random.",
		},
		{
			name: "list_inboxes", title: "List inboxes", operation: gen.ListInboxesOperation, hints: reads,
			description: "The inboxes that this key can see, newest first.",
		},
		{
			name: waitTool, title: "Wait for a mail", operation: gen.WaitForMessageOperation, hints: waits, mail: true, show: showWait, run: wait,
			description: "Waits until a mail arrives that matches, and answers with it and the codes and links that were found in it. " +
				"A mail of the last minute counts too. When it times out, call again.",
			changed: map[string]schema{"timeout": {
				"type": "integer", "minimum": 1, "maximum": waitMost, "default": waitDefault, "description": "Seconds to wait.",
			}},
			trim: func(a map[string]any) { trimMessage(object(a["message"])) },
		},
		{
			name: "search_messages", title: "Search messages", operation: gen.ListMessagesOperation, hints: reads, mail: true, show: showMessages,
			description: "Messages received and sent, newest first, by words, sender, subject, time or state. Shows the beginning of each; get_message shows all.",
			trim:        eachMessage("data", trimListed),
		},
		{
			name: "get_message", title: "Read a message", operation: gen.GetMessageOperation, hints: reads, mail: true, show: showOne,
			description: "One message with its text, the codes and links found in it, its attachments, and for one that was sent what became of it.",
			trim:        trimMessage,
		},
		{
			name: "get_attachment", title: "Get an attachment", operation: gen.GetAttachmentOperation, hints: reads, mail: true, show: showAttachment,
			description: "A link to download an attachment by, for 15 minutes, with its name, type and size.",
		},
		{
			name: "list_threads", title: "List threads", operation: gen.ListThreadsOperation, hints: reads, mail: true, show: showThreads,
			description: "The conversations of an inbox, the last active first.",
		},
		{
			name: "get_thread", title: "Read a thread", operation: gen.GetThreadOperation, hints: reads, mail: true, show: showThread,
			description: "A conversation with its messages, oldest first.",
			trim:        eachMessage("messages", trimMessage),
		},
		{
			name: "list_drafts", title: "List drafts", operation: gen.ListDraftsOperation, hints: reads, mail: true, show: showDrafts, run: listDrafts,
			description: `Mail that waits for approval, or did. The status "pending" is the approval queue.`,
			changed:     map[string]schema{"inbox_id": {"type": "string", "maxLength": 40, "description": "Only this inbox."}},
		},
		{
			name: "get_draft", title: "Read a draft", operation: gen.GetDraftOperation, hints: reads, mail: true, show: showDraft, changed: aDraft,
			description: "One draft, whole: what would be sent if it were approved.",
		},
	}
}

func sendingTools() []*tool {
	return []*tool{
		{
			name: "send_email", title: "Send an email", operation: gen.SendMessageOperation, hints: sends, mail: true, once: true,
			show: showSent, trim: trimSent,
			description: "Sends a new mail from an inbox. Give text, html or both. Under the policy \"approval\" it becomes a draft. " +
				"The same call repeated within 10 seconds sends once.",
		},
		{
			name: "reply", title: "Reply to a message", operation: gen.ReplyToMessageOperation, hints: sends, mail: true, once: true,
			show: showSent, trim: trimSent,
			description: "Answers a message in its thread, to its sender, or with reply_all to all. Give text, html or both. " +
				"The same call repeated within 10 seconds sends once.",
		},
		{
			name: "forward", title: "Forward a message", operation: gen.ForwardMessageOperation, hints: sends, mail: true, once: true,
			show: showSent, trim: trimSent,
			description: "Sends a message on, with its attachments; text is a note on top. The same call repeated within 10 seconds sends once.",
		},
		{
			name: "send_transactional", title: "Send a transactional email", operation: gen.SendEmailOperation, hints: sends, mail: true, once: true,
			show: showEmail, left: []string{"idempotencyKey"},
			description: "Sends an email from any address on a verified domain, at once or later, plain or by a template with data. " +
				"The same call repeated within 10 seconds sends once.",
		},
		{
			name: "approve_draft", title: "Approve a draft", operation: gen.SendDraftOperation, hints: decides, mail: true, once: true,
			changed: aDraft, show: showSent, trim: trimSent,
			description: "Sends a pending draft as it is. With the version that was read, it is sent only if nobody has edited it since.",
		},
		{
			name: "reject_draft", title: "Reject a draft", operation: gen.RejectDraftOperation, hints: decides, mail: true, show: showDraft, once: true, changed: aDraft,
			description: "Ends a pending draft: it is not sent.",
		},
	}
}

func otherTools() []*tool {
	return []*tool{
		{
			name: "list_templates", title: "List templates", operation: gen.ListTemplatesOperation, hints: reads,
			description: "The templates that send_transactional can use.",
		},
		{
			name: "preview_template", title: "Preview a template", operation: gen.PreviewTemplateOperation, hints: reads,
			renamed:     map[string]string{"id": "template_id"},
			description: "Renders a template with data, and lists the variables that have no value.",
		},
		{
			name: "get_usage", title: "Get usage", operation: gen.GetUsageOperation, hints: reads,
			description: "What has been used of the limits, and whether sending is paused.",
		},
		diagnoseTool(),
	}
}
