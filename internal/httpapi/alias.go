package httpapi

import (
	"strconv"

	"github.com/postroom/postroom/gen"
)

// Some fields of emails are in camel case, and each has an alias in snake case, as all other
// fields are. joinAliases moves the values of aliases to the fields, so that nothing behind
// it knows of them. It returns a fault if both are given.
func joinAliases(body any) *Fault {
	switch b := body.(type) {
	case *gen.EmailSend:
		return first(
			joinFiles(b.Attachments),
			join(&b.ReplyTo, &b.ReplyToAlias, "reply_to", "replyTo"),
			join(&b.ScheduledAt, &b.ScheduledAtAlias, "scheduled_at", "scheduledAt"),
			join(&b.IdempotencyKey, &b.IdempotencyKeyAlias, "idempotency_key", "idempotencyKey"))
	case *gen.EmailBatchSend:
		return first(
			joinFiles(b.Attachments),
			join(&b.ReplyTo, &b.ReplyToAlias, "reply_to", "replyTo"),
			join(&b.TemplateData, &b.TemplateDataAlias, "template_data", "templateData"))
	case *gen.EmailUpdate:
		if fault := join(&b.ScheduledAt, &b.ScheduledAtAlias, "scheduled_at", "scheduledAt"); fault != nil {
			return fault
		}
		if _, ok := b.ScheduledAt.Get(); !ok {
			return &Fault{"scheduledAt", "is required"}
		}
	}
	return nil
}

func joinFiles(files gen.EmailAttachmentInputs) *Fault {
	for i := range files {
		at, place := &files[i], "attachments["+strconv.Itoa(i)+"]."
		fault := first(
			join(&at.ContentType, &at.ContentTypeAlias, place+"content_type", "contentType"),
			join(&at.ContentId, &at.ContentIDAlias, place+"content_id", "contentId"))
		if fault != nil {
			return fault
		}
	}
	return nil
}

// join moves the value of an alias to its field. Null is the same as no value.
func join[Field interface{ Get() (Value, bool) }, Value any](field, alias *Field, aliasName, fieldName string) *Fault {
	if _, ok := (*alias).Get(); !ok {
		return nil
	}
	if _, ok := (*field).Get(); ok {
		return &Fault{aliasName, "is the same field as " + fieldName + ": give one of them"}
	}
	var none Field
	*field, *alias = *alias, none
	return nil
}

func first(faults ...*Fault) *Fault {
	for _, f := range faults {
		if f != nil {
			return f
		}
	}
	return nil
}
