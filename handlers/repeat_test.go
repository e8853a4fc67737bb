package handlers_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A call that may happen once in 10 seconds does, across two nodes, and again
// after that (H18).
func TestRepeatedCallHappensOnce(t *testing.T) {
	t.Parallel()
	const within = 10 * time.Second
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		servers := startNodes(t, cfg, 2)
		s := servers[0]
		nodes := []*gen.Client{localClient(t, s), localClient(t, servers[len(servers)-1])}
		in := s.newInbox(t)
		ctx := onceWithin(httpapi.AsPerson(t.Context(), httpapi.Person{Seq: 1, AccountID: s.account, ID: "usr_1", Role: store.RoleAdmin}), within)
		send := func(ctx context.Context, api *gen.Client, text string) string {
			id, err := sendOnce(ctx, api, in.ID, text)
			must(t, err)
			return id
		}

		var calls sync.WaitGroup
		ids := make([]string, 20)
		for i := range ids {
			calls.Go(func() {
				id, err := sendOnce(ctx, nodes[i%2], in.ID, "Hello.")
				var refused *gen.ErrorStatusCodeWithHeaders
				if err != nil && (!errors.As(err, &refused) || refused.Response.Error.Code != gen.ErrorCodeIdempotencyInProgress) {
					t.Error(err)
				}
				ids[i] = id
			})
		}
		calls.Wait()
		first := send(ctx, nodes[0], "Hello.")
		for _, id := range ids {
			if id != "" && id != first {
				t.Errorf("a repeat became another message: %s and %s", first, id)
			}
		}
		s.clock.Add(within - time.Millisecond)
		if id := send(ctx, nodes[1], "Hello."); id != first {
			t.Error("a repeat just within the TTL was executed again")
		}
		other := onceWithin(httpapi.AsPerson(t.Context(), httpapi.Person{Seq: 2, AccountID: s.account, ID: "usr_2", Role: store.RoleAdmin}), within)
		if send(other, nodes[0], "Hello.") == first {
			t.Error("the call of another key counted as a repeat")
		}
		if send(ctx, nodes[0], "Hello!") == first {
			t.Error("another call counted as a repeat")
		}
		s.clock.Add(time.Millisecond)
		second := send(ctx, nodes[0], "Hello.")
		if second == first {
			t.Error("a call after the TTL counted as a repeat")
		}
		if id := send(ctx, nodes[1], "Hello."); id != second {
			t.Error("the TTL did not restart with the second call")
		}
		list := s.do(t, http.MethodGet, "/v1/messages?limit=100&inbox_id="+in.ID, "")
		if all := list.strs(t, "data", "id"); len(all) != 4 {
			t.Errorf("%d messages were sent, want 4", len(all))
		}
	})
}

func localClient(t *testing.T, s *server) *gen.Client {
	t.Helper()
	api, err := httpapi.NewLocalClient(s.web.Config.Handler)
	must(t, err)
	return api
}

func sendOnce(ctx context.Context, api *gen.Client, inbox, text string) (string, error) {
	res, err := api.SendMessage(ctx, &gen.MessageSend{
		To: gen.NewMailboxRecipients("a@out.example"), Subject: "s", Text: gen.NewOptNilString(text),
	}, gen.SendMessageParams{InboxID: inbox})
	if err != nil {
		return "", err
	}
	m, _ := res.(*gen.Message)
	return m.ID, nil
}

func onceWithin(ctx context.Context, d time.Duration) context.Context {
	return httpapi.WithSpecial(ctx, func(s *httpapi.Special) { s.OnceWithin = d })
}
