package main

import (
	"context"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/extract"
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

// reply extracts the reply text of a whole message, or of the text in a file,
// as receiving a message does.
func (c *corpus) reply(r replyRecord) (string, error) {
	raw, err := c.mail(r.File)
	if err != nil {
		return "", err
	}
	if r.Kind != "eml" {
		raw = append([]byte("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"), raw...)
	}
	m, err := parse(raw)
	if err != nil {
		return "", err
	}
	return extract.Derive(m, mail.DefaultLimits()).ReplyText, nil
}
