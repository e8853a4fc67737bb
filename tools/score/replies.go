package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/postroom/postroom/internal/mail/reply"
)

type replyRecord struct {
	ID       string `json:"id"`
	File     string `json:"file"`
	Kind     string `json:"kind"`
	Expected struct {
		Reply string `json:"reply"`
	} `json:"expected"`
}

func scoreReplies(_ context.Context, c *corpus) ([]row, error) {
	list, err := records[replyRecord](c, "replies.jsonl")
	if err != nil {
		return nil, err
	}
	var exact share
	for _, r := range list {
		got, err := c.reply(r)
		if err != nil {
			return nil, err
		}
		right := folded(got) == folded(r.Expected.Reply)
		if exact.add(right); !right {
			c.miss(r.ID, "reply %q, want %q", got, r.Expected.Reply)
		}
	}
	return []row{exact.atLeast("reply text", 0.93)}, nil
}

// reply extracts the reply text of a whole message, or of the text in a file.
func (c *corpus) reply(r replyRecord) (string, error) {
	if r.Kind != "eml" {
		text, err := os.ReadFile(filepath.Join(c.folder, filepath.FromSlash(r.File)))
		return reply.Text(strings.ReplaceAll(string(text), "\r\n", "\n"), nil), err
	}
	raw, err := c.mail(r.File)
	if err != nil {
		return "", err
	}
	m, err := parse(raw)
	if err != nil {
		return "", err
	}
	if m.Text == "" {
		return reply.TextOfHTML(m.HTML, nil), nil
	}
	return reply.Text(m.Text, nil), nil
}
