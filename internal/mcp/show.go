package mcp

import (
	"fmt"
	"strings"
)

// trimMessage removes the headers, and the HTML if there is text.
func trimMessage(m map[string]any) {
	if m == nil {
		return
	}
	m["headers"] = nil
	if text(m["text"]) != "" {
		m["html"] = nil
	}
}

// trimListed keeps only the summary of a message.
func trimListed(m map[string]any) {
	trimMessage(m)
	m["text"], m["html"], m["extracted_text"] = nil, nil, nil
}

// trimSent removes what the caller has just written.
func trimSent(a map[string]any) {
	if text(a["object"]) == "message" {
		trimListed(a)
	}
}

// eachMessage applies trim to the messages of a list.
func eachMessage(field string, trim func(map[string]any)) func(map[string]any) {
	return func(a map[string]any) {
		for _, m := range list(a[field]) {
			trim(object(m))
		}
	}
}

func showWait(f fence, a map[string]any) string {
	m := object(a["message"])
	if m == nil {
		said := fmt.Sprintf("No matching message since %s. To continue, call wait_for_email again with since %q.", text(a["since"]), text(a["since"]))
		if older := object(a["older"]); older != nil {
			said += fmt.Sprintf(" %v matched before that, the newest at %s: to read it, pass since %[2]q.", older["count"], text(older["newest"]))
		}
		return said
	}
	return "A message arrived.\n" + showOne(f, m)
}

func showOne(f fence, m map[string]any) string { return f.notice() + "\n" + f.message(m) }

// listOf returns what shows a list of messages, threads or drafts.
func listOf(what string, show func(fence, map[string]any) string) func(fence, map[string]any) string {
	return func(f fence, a map[string]any) string {
		return f.all(a, what, list(a["data"]), func(item map[string]any) string { return show(f, item) })
	}
}

func showThread(f fence, a map[string]any) string {
	return f.thread(a) + "\n" + f.all(a, "message", list(a["messages"]), f.message)
}

// showSent describes the result of a send.
func showSent(f fence, a map[string]any) string {
	if text(a["object"]) == "draft" {
		return fmt.Sprintf("Not sent yet: inbox %s needs approval. Draft %s, version %v, is %s.\n%s",
			text(a["inbox_id"]), text(a["id"]), a["version"], text(a["status"]), f.notice()+"\n"+f.wrap(mailHead(a)))
	}
	return "Accepted for delivery.\n" + showOne(f, a)
}

func showDraft(f fence, a map[string]any) string { return f.notice() + "\n" + f.draft(a) }

// draft shows the content of a draft.
func (f fence) draft(d map[string]any) string {
	var said strings.Builder
	said.WriteString(mailHead(d))
	for name, value := range object(d["headers"]) {
		fmt.Fprintf(&said, "Header field %s: %s\n", name, text(value))
	}
	if why := text(d["reject_reason"]); why != "" {
		said.WriteString("Rejected because: " + why + "\n")
	}
	said.WriteString("\n" + text(d["text"]))
	if html := text(d["html"]); html != "" {
		said.WriteString("\nAs html:\n" + html)
	}
	return fmt.Sprintf("Draft %s, version %v, status %s, kind %s, inbox %s, made by %s at %s\n%s", text(d["id"]), d["version"], text(d["status"]),
		text(d["kind"]), text(d["inbox_id"]), text(d["created_by"]), text(d["created_at"]), f.wrap(said.String()))
}

func showAttachment(f fence, a map[string]any) string {
	return fmt.Sprintf("Attachment %s of message %s, %v bytes. Download it until %s from %s\n%s\n%s", text(a["id"]), text(a["message_id"]),
		a["size"], text(a["expires_at"]), text(a["download_url"]), f.notice(), f.wrap(text(a["filename"])+"\n"+text(a["content_type"])))
}

// showEmail describes the delivery of an email that was sent without an inbox.
func showEmail(f fence, e map[string]any) string {
	if text(e["object"]) == "draft" {
		return showSent(f, e)
	}
	said := fmt.Sprintf("Accepted for delivery: email %s, status %s", text(e["id"]), text(e["status"]))
	if at := text(e["scheduled_at"]); at != "" {
		said += ", scheduled for " + at
	}
	return said + ". diagnose_delivery reports its delivery status."
}

// all shows a list and the cursor of its next page.
func (f fence) all(a map[string]any, what string, of []any, show func(map[string]any) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s(s).\n", len(of), what)
	if len(of) > 0 {
		b.WriteString(f.notice() + "\n")
	}
	for _, v := range of {
		b.WriteString(show(object(v)) + "\n")
	}
	if more, _ := a["has_more"].(bool); more {
		fmt.Fprintf(&b, "There are more: use cursor %q.\n", text(a["cursor"]))
	}
	return b.String()
}

// message shows the metadata of a message, and its content between the tags.
func (f fence) message(m map[string]any) string {
	var b strings.Builder
	at := text(m["received_at"])
	if at == "" {
		at = text(m["created_at"])
	}
	fmt.Fprintf(&b, "Message %s, direction %s, status %s, inbox %s, thread %s, at %s",
		text(m["id"]), text(m["direction"]), text(m["status"]), text(m["inbox_id"]), text(m["thread_id"]), at)
	if auth := object(m["auth"]); auth != nil {
		fmt.Fprintf(&b, ", spf=%s dkim=%s dmarc=%s", text(auth["spf"]), text(auth["dkim"]), text(auth["dmarc"]))
		if text(auth["internal"]) != "" {
			fmt.Fprintf(&b, " internal=%s account=%s", text(auth["internal"]), text(auth["internal_account"]))
		}
	}
	if expired, _ := m["expired"].(bool); expired {
		b.WriteString(", content deleted")
	}
	b.WriteString("\n" + f.wrap(mailHead(m)+mailBody(m)))
	return b.String()
}

func (f fence) thread(t map[string]any) string {
	last := object(t["latest_message"])
	var b strings.Builder
	fmt.Fprintf(&b, "Thread %s, inbox %s, %v message(s), the last %s at %s\n",
		text(t["id"]), text(t["inbox_id"]), t["message_count"], text(last["id"]), text(t["last_message_at"]))
	content := fmt.Sprintf("Subject: %s\nParticipants: %s\n", text(t["subject"]), joinTexts(t["participants"]))
	b.WriteString(f.wrap(content + text(last["snippet"])))
	return b.String()
}

// mailHead returns the header of a message or draft, to be fenced.
func mailHead(m map[string]any) string {
	var b strings.Builder
	if from := object(m["from"]); from != nil {
		fmt.Fprintf(&b, "From: %s\n", mailbox(from))
	}
	for _, field := range []struct{ label, name string }{{"To", "to"}, {"Cc", "cc"}, {"Bcc", "bcc"}, {"Reply-To", "reply_to"}} {
		var boxes []string
		for _, v := range list(m[field.name]) {
			boxes = append(boxes, mailbox(object(v)))
		}
		if len(boxes) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", field.label, strings.Join(boxes, ", "))
		}
	}
	fmt.Fprintf(&b, "Subject: %s\n", text(m["subject"]))
	for _, v := range list(m["attachments"]) {
		a := object(v)
		fmt.Fprintf(&b, "Attachment: %s %q, %s, %v bytes\n", text(a["id"]), text(a["filename"]), text(a["content_type"]), a["size"])
	}
	for _, v := range list(m["recipients"]) {
		r := object(v)
		fmt.Fprintf(&b, "Recipient: %s, %s", text(r["email"]), text(r["status"]))
		if said := text(r["last_response"]); said != "" {
			fmt.Fprintf(&b, ", last response: %s", said)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// mailBody returns the text of a message with the extracted codes and links.
func mailBody(m map[string]any) string {
	var b strings.Builder
	if found := object(m["extracted"]); found != nil {
		for _, field := range []struct{ label, name string }{{"Code", "otp"}, {"Action link", "action_link"}} {
			if v := text(found[field.name]); v != "" {
				fmt.Fprintf(&b, "%s: %s\n", field.label, v)
			}
		}
		for _, field := range []struct{ label, name string }{{"Codes", "codes"}, {"Links", "links"}} {
			if v := joinTexts(found[field.name]); v != "" {
				fmt.Fprintf(&b, "%s: %s\n", field.label, v)
			}
		}
	}
	if c := object(m["calendar"]); c != nil {
		start := object(c["start"])
		fmt.Fprintf(&b, "Invitation: %s\nMethod: %s\nStart: %s %s\nLocation: %s\nOrganizer: %s\n", text(c["summary"]), text(c["method"]),
			text(start["local"]), text(start["zone"]), text(c["location"]), mailbox(object(c["organizer"])))
	}
	if body := text(m["text"]); body != "" {
		b.WriteString("\n" + body)
	} else {
		b.WriteString("\n" + text(m["snippet"]))
	}
	return b.String()
}

func mailbox(a map[string]any) string {
	if name := text(a["name"]); name != "" {
		return name + " <" + text(a["email"]) + ">"
	}
	return text(a["email"])
}

func joinTexts(v any) string {
	var out []string
	for _, s := range list(v) {
		out = append(out, text(s))
	}
	return strings.Join(out, ", ")
}
