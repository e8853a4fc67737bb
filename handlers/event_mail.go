package handlers

import (
	"context"
	"errors"
	"strings"

	"github.com/postroom/postroom/internal/stream"
	"github.com/postroom/postroom/store"
)

// eventMail finds the messages and emails of events, either loaded in advance
// or one by one.
type eventMail struct {
	store    *store.Store
	messages map[int64]store.Message // by number; those that were read before
	emails   map[int64]store.Email
}

// readMail loads the messages and emails of events. Missing ones are read
// later.
func readMail(ctx context.Context, s *store.Store, events []store.Event) (*eventMail, error) {
	var messages, emails []int64
	for _, e := range events {
		switch {
		case e.MessageSeq == nil:
		case ofEmail(e):
			emails = append(emails, *e.MessageSeq)
		default:
			messages = append(messages, *e.MessageSeq)
		}
	}
	m := &eventMail{store: s}
	var inMessages, inEmails error
	m.messages, inMessages = s.MessagesOf(ctx, messages)
	m.emails, inEmails = s.EmailsOf(ctx, emails)
	return m, errors.Join(inMessages, inEmails)
}

// ofEmail reports whether an event is about an email.
func ofEmail(e store.Event) bool { return strings.HasPrefix(string(e.Type), "email.") }

// message returns the message of an event. The event must have one.
func (m *eventMail) message(ctx context.Context, e store.Event) (store.Message, error) {
	if one, ok := m.messages[*e.MessageSeq]; ok {
		return one, nil
	}
	return m.store.Message(ctx, e.AccountID, *e.MessageID)
}

func (m *eventMail) email(ctx context.Context, e store.Event) (store.Email, error) {
	if one, ok := m.emails[*e.MessageSeq]; ok {
		return one, nil
	}
	return m.store.Email(ctx, e.AccountID, nil, *e.MessageID)
}

// EventFrames returns a function that renders events as stream frames: the id,
// the type, and the result of EventBody on one line.
func EventFrames(s *store.Store) func(ctx context.Context, events []store.Event) []stream.Rendered {
	return func(ctx context.Context, events []store.Event) []stream.Rendered {
		frames := make([]stream.Rendered, len(events))
		mail, err := readMail(ctx, s, events)
		for i, e := range events {
			frames[i] = stream.Rendered{ID: e.ID, Err: err}
			if err != nil {
				continue
			}
			data, err := tellOf(ctx, mail, e)
			frames[i].Err = err
			if err == nil {
				frames[i].Frame = frame(e.ID, string(e.Type), data)
			}
		}
		return frames
	}
}
