package main

import (
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mime"
)

type mimeRecord struct {
	ID       string `json:"id"`
	File     string `json:"file"`
	Expected struct {
		Subject    *string  `json:"subject"`
		From       *string  `json:"from"`
		FromName   *string  `json:"from_name"`
		TextStarts *string  `json:"text_starts"`
		TextEnds   *string  `json:"text_ends"`
		Count      *int     `json:"attachment_count"`
		Names      []string `json:"attachment_names"`
	} `json:"expected"`
}

func scoreMIME(_ context.Context, c *corpus) ([]row, error) {
	list, err := records[mimeRecord](c, "mime.jsonl")
	if err != nil {
		return nil, err
	}
	var all, fields share
	for i := range list {
		raw, err := c.mail(list[i].File)
		if err != nil {
			return nil, err
		}
		m, err := parse(raw)
		if err != nil {
			return nil, err
		}
		right := true
		list[i].compare(m, func(field string, ok bool, got, want any) {
			if fields.add(ok); !ok {
				right = false
				c.miss(list[i].ID, "%s %s %q, want %q", list[i].File, field, got, want)
			}
		})
		all.add(right)
	}
	return []row{all.atLeast("MIME, all fields right", 0.93), fields.plain("MIME fields")}, nil
}

// compare reports for each field of the record whether it was parsed correctly.
func (r *mimeRecord) compare(m *mime.Message, tell func(field string, ok bool, got, want any)) {
	text := folded(m.Text)
	if text == "" {
		text = folded(htmltext.Text(m.HTML))
	}
	var from mail.Address
	if m.From != nil {
		from = *m.From
	}
	same := func(field string, want *string, got string) {
		if want != nil {
			tell(field, folded(got) == folded(*want), got, *want)
		}
	}
	same("subject", r.Expected.Subject, m.Subject)
	if want := r.Expected.From; want != nil {
		tell("from", strings.EqualFold(folded(from.Email), folded(*want)), from.Email, *want)
	}
	same("from_name", r.Expected.FromName, from.Name)
	if want := r.Expected.TextStarts; want != nil {
		tell("text_starts", strings.HasPrefix(text, folded(*want)), text[:min(len(text), len(*want))], *want)
	}
	if want := r.Expected.TextEnds; want != nil {
		tell("text_ends", strings.HasSuffix(text, folded(*want)), text[max(0, len(text)-len(*want)):], *want)
	}
	if want := r.Expected.Count; want != nil {
		tell("attachment_count", len(m.Attachments) == *want, len(m.Attachments), *want)
	}
	if r.Expected.Names != nil {
		names := attachmentNames(m)
		want := slices.Clone(r.Expected.Names)
		for i := range want {
			want[i] = folded(want[i])
		}
		slices.Sort(want)
		tell("attachment_names", slices.Equal(names, want), names, want)
	}
}

// attachmentNames returns the names of the attachments that have one, sorted.
func attachmentNames(m *mime.Message) []string {
	names := []string{}
	for _, a := range m.Attachments {
		if a.Filename != "" {
			names = append(names, folded(a.Filename))
		}
	}
	slices.Sort(names)
	return names
}
