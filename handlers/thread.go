package handlers

import (
	"context"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// ListThreads implements GET /v1/inboxes/{inbox_id}/threads.
func (a *API) ListThreads(ctx context.Context, p gen.ListThreadsParams) (*gen.ThreadList, error) {
	in, err := a.inboxOf(ctx, p.InboxID)
	if err != nil {
		return nil, err
	}
	l, err := a.store.ListThreads(ctx, in, labelOf(p.Label), pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.ThreadList](l, err, threadToAPI)
}

func threadToAPI(t store.Thread) *gen.Thread {
	return &gen.Thread{
		Object: "thread", ID: t.ID, InboxID: t.InboxID, Subject: t.Subject, Participants: orEmpty(t.Participants.V), Labels: orEmpty(t.Labels.V),
		MessageCount: int(t.MessageCount), LatestMessage: latestToAPI(t.Latest), LastMessageAt: t.LastMessageAt.Time,
		CreatedAt: t.CreatedAt.Time,
	}
}

// GetThread implements GET /v1/inboxes/{inbox_id}/threads/{thread_id}.
func (a *API) GetThread(ctx context.Context, p gen.GetThreadParams) (*gen.ThreadWithMessages, error) {
	in, err := a.inboxOf(ctx, p.InboxID)
	if err != nil {
		return nil, err
	}
	t, ms, err := a.store.Thread(ctx, in, p.ThreadID)
	if err != nil {
		return nil, err
	}
	return &gen.ThreadWithMessages{
		Object: "thread", ID: t.ID, InboxID: t.InboxID, Subject: t.Subject, Participants: orEmpty(t.Participants.V), Labels: orEmpty(t.Labels.V),
		MessageCount: int(t.MessageCount), LatestMessage: latestToAPI(t.Latest), LastMessageAt: t.LastMessageAt.Time,
		CreatedAt: t.CreatedAt.Time, Messages: mapped(ms, func(m store.Message) gen.Message { return *textMessage(m) }),
	}, nil
}

func latestToAPI(m store.Message) gen.ThreadLatestMessage {
	out := gen.ThreadLatestMessage{
		ID: m.ID, Direction: string(m.Direction), From: gen.NilMailAddress{Null: true}, To: addressesToAPI(m.Addresses.V.To),
		Auth: gen.NilAuthResults{Null: true}, Snippet: gen.NilString{Null: true},
	}
	if from := m.Addresses.V.From; from != nil {
		out.From = gen.NewNilMailAddress(addressToAPI(*from))
	}
	if m.ExpiredAt == nil && m.Content != nil {
		out.Snippet, out.Auth = gen.NewNilString(m.Content.Snippet), authToAPI(*m.Content)
	}
	return out
}
