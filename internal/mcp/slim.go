package mcp

import "slices"

// words are short descriptions of arguments, the same in every tool. A tool list is
// read by a model before each conversation, so that each word in it costs.
var words = map[string]string{
	"after":               "Only messages after this one, such as the last match.",
	"attachment_id":       "The attachment, att_…",
	"attachments":         "At most 20 files, content in base64.",
	"cursor":              "From the previous page.",
	"direction":           "in: received, out: sent.",
	"display_name":        "The name beside the address.",
	"draft_id":            "The draft, drf_…",
	"expires_at":          "When the inbox ends.",
	"from":                "The sender: an address, *@domain or *@*.domain.",
	"has":                 "code: the newest with a code; link: with a link.",
	"idempotency_key":     "Repeats return the first result.",
	"inbox_id":            "The inbox: address or id.",
	"message_id":          "The message, msg_…",
	"data":                "Template variables.",
	"email_id":            "An email, em_…",
	"headers":             "Extra header fields.",
	"metadata":            "Your own data.",
	"name":                "The part before the @.",
	"q":                   `Words in subject or text, "phrases" in quotes.`,
	"approval":            "If it needs approval: reject or send it after expires_in seconds.",
	"category":            "marketing adds unsubscribe headers.",
	"include_attachments": "",
	"scheduledAt":         "At most 30 days ahead.",
	"template":            "Its id.",
	"timeout":             "Seconds.",
	"send_policy":         "approval: each send becomes a draft.",
	"since":               "RFC 3339.",
	"tags":                "Your own labels.",
	"thread_id":           "The thread, thr_…",
	"to":                  "Addresses, such as Ana <ana@example.org>.",
	"version":             "The version that you saw.",

	"bcc": "", "cc": "", "html": "", "limit": "", "content_type": "", "domain": "", "reason": "", "reply_all": "", "reply_to": "", "replyTo": "", "retention_days": "", "template_id": "", "status": "", "subject": "", "text": "",
}

// unlisted are keywords that a model does not need: the API checks them, and its
// errors explain them.
var unlisted = []string{
	"pattern", "examples", "example", "format", "contentEncoding", "minLength", "maxLength", "minItems", "maxItems", "maxProperties",
	"description", "additionalProperties", "patternProperties",
}

// slim returns the properties as they are listed for models. Only arguments have
// descriptions, not what is inside of them: that of changed, or of words.
func slim(properties schema, changed map[string]schema) schema {
	out := schema{}
	for name, v := range properties {
		s := object(prune(short(v), unlisted...))
		word, known := changed[name]["description"].(string)
		if !known {
			word, known = words[name]
		}
		if !known {
			word = text(object(v)["description"])
		}
		if word != "" {
			s["description"] = word
		}
		out[name] = s
	}
	return out
}

// short simplifies the alternatives of schemas: an address is a text, several are a
// list of texts, and null, which means the same as leaving an argument out, is not
// offered.
func short(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = short(v[i])
		}
		return out
	case schema:
		out := schema{}
		for name, value := range v {
			switch name {
			case "oneOf":
				for k, chosen := range choose(list(value)) {
					if _, given := v[k]; !given {
						out[k] = chosen
					}
				}
			case "type":
				out[name] = withoutNull(value)
			case "enum":
				out[name] = slices.DeleteFunc(slices.Clone(list(value)), func(e any) bool { return e == nil })
			default:
				out[name] = short(value)
			}
		}
		return out
	}
	return v
}

// choose returns the alternative that is listed: the most general one.
func choose(all []any) schema {
	var chosen schema
	for _, one := range all {
		s := object(short(one))
		if _, isAddress := object(s["properties"])["email"]; isAddress || text(s["type"]) == "null" {
			continue
		}
		if chosen == nil || text(s["type"]) == "array" {
			chosen = s
		}
	}
	return chosen
}

// withoutNull returns the type without null.
func withoutNull(v any) any {
	rest := slices.DeleteFunc(slices.Clone(list(v)), func(t any) bool { return t == "null" })
	if len(rest) == 1 {
		return rest[0]
	}
	if len(rest) > 1 {
		return rest
	}
	return v
}
