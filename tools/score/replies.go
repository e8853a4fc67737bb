package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/postroom/postroom/internal/message"
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
		text, err := c.replyText(r)
		if err != nil {
			return nil, err
		}
		got := message.ReplyText(text)
		right := folded(got) == folded(r.Expected.Reply)
		if exact.add(right); !right {
			c.miss(r.ID, "reply %q, want %q", got, r.Expected.Reply)
		}
	}
	return []row{exact.atLeast("reply text", 0.93)}, nil
}

// replyText returns the text of a whole mail, or the file where it is one.
func (c *corpus) replyText(r replyRecord) (string, error) {
	if r.Kind != "eml" {
		raw, err := os.ReadFile(filepath.Join(c.folder, filepath.FromSlash(r.File)))
		return strings.ReplaceAll(string(raw), "\r\n", "\n"), err
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
		return message.HTMLToText(m.HTML), nil
	}
	return m.Text, nil
}
