package mcp

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/ids"
)

// longInboxID is the length of older inbox ids.
const longInboxID = len("ibx_") + ids.LongBody

// findInbox replaces the address of an inbox, or the beginning of its id, by the id.
// Models know inboxes by their addresses, and shorten ids.
func (s *server) findInbox(ctx context.Context, args arguments) error {
	var name string
	if raw, ok := args["inbox_id"]; !ok || json.Unmarshal(raw, &name) != nil || name == "" {
		return nil
	}
	by := "id_prefix"
	if strings.Contains(name, "@") {
		by = "address"
	} else if !strings.HasPrefix(name, "ibx_") || len(name) == ids.Length || len(name) >= longInboxID {
		return nil // a whole id, or one that the operation refuses
	}
	filter, _ := json.Marshal(name) // cannot fail for a string
	found, err := s.api.call(ctx, s.also[gen.ListInboxesOperation], arguments{by: filter, "limit": json.RawMessage("2")}, "", false)
	if r, refused := err.(*refusal); refused && r.code == gen.ErrorCodeInsufficientScope { //nolint:errorlint // call's own, unwrapped
		return &refusal{code: r.code, message: "inbox_id: this key cannot list inboxes: give the whole id"}
	}
	if err != nil {
		return err
	}
	inboxes := list(found["data"])
	switch len(inboxes) {
	case 0:
		return notFound("inbox " + name)
	case 1:
		args["inbox_id"], _ = json.Marshal(object(inboxes[0])["id"]) // as above
		return nil
	}
	return invalid("inbox_id: the ids of several inboxes begin with %s", name)
}

// kinds are the objects that arguments name, innermost first.
var kinds = []struct{ argument, kind string }{
	{"attachment_id", "attachment"}, {"message_id", "message"}, {"email_id", "email"}, {"draft_id", "draft"},
	{"id", "template"}, {"thread_id", "thread"}, {"inbox_id", "inbox"},
}

// named returns the names in the arguments of a call, before they are used.
func named(args arguments) string {
	var all []string
	for _, k := range kinds {
		var id string
		if raw, ok := args[k.argument]; ok && json.Unmarshal(raw, &id) == nil && id != "" {
			all = append(all, k.kind+" "+id)
		}
	}
	return strings.Join(all, " or ")
}

// explain adds the names to a refusal because something was not found, unless the API
// says more.
func explain(err error, names string) error {
	r, refused := err.(*refusal) //nolint:errorlint // this package's, and never wrapped
	if !refused || r.code != gen.ErrorCodeNotFound || r.message != httpapi.ErrNotFound.Message || names == "" {
		return err
	}
	return notFound(names)
}

func notFound(what string) error {
	return &refusal{code: gen.ErrorCodeNotFound, message: what + " not found, or this key has no access to it"}
}
