package contract_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store/storetest"
)

// client returns the Go client. Its exchanges are validated against the
// contract too.
func (in *install) client(t *testing.T, key string) *client.Client {
	t.Helper()
	c, err := client.New(in.api, key, client.WithHTTPClient(&http.Client{Transport: in.check.Transport(t, in.base), Timeout: 2 * patience}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// must fails the test on an error.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestGeneratedClient does the main job with the Go client, which is mostly
// generated: receive a message, wait for its code, reply.
func TestGeneratedClient(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e storetest.Engine) {
		in := start(t, e, newChecker(t), "POSTROOM_RATE_LIMITS=off")
		ctx, c := t.Context(), in.client(t, firstKey)
		newInbox := func(name string) *gen.Inbox {
			return must[*gen.Inbox](t)(c.NewInbox(ctx, gen.InboxCreate{Name: client.Text(name), Metadata: gen.NewOptMetadata(gen.Metadata{
				"run": jx.Raw(`42`), "note": jx.Raw(`null`),
			})}))
		}
		agent, human := newInbox("agent"), newInbox("human")

		type waited struct {
			m   *gen.Message
			err error
		}
		found := make(chan waited, 1)
		go func() {
			m, err := c.WaitForMessage(ctx, agent.ID, client.Wait{Has: gen.WaitHasCode})
			found <- waited{m, err}
		}()
		in.deliver(t, agent.Address)
		w := <-found
		first := must[*gen.Message](t)(w.m, w.err)
		if code := must[string](t)(c.WaitForCode(ctx, agent.ID, client.Wait{})); code != "482913" {
			t.Errorf("the code is %q", code)
		}
		if x := first.Extracted.Value; x.Otp.Value != "482913" || x.ActionLink.Value != "https://app.example.org/confirm?token=abc" {
			t.Errorf("extracted %+v", x)
		}
		whole := must[*gen.Message](t)(c.GetMessage(ctx, gen.GetMessageParams{MessageID: first.ID}))
		if whole.Subject != "Your sign-in code is 482913" || whole.From.Value.Email != "ana@example.org" {
			t.Errorf("subject %q from %q", whole.Subject, whole.From.Value.Email)
		}
		in.downloads(t, c, whole)
		in.replies(t, c, agent, human)
		wantClientError(t, c)
	})
}

// downloads fetches the attachment of a message and the raw message.
func (in *install) downloads(t *testing.T, c *client.Client, m *gen.Message) {
	t.Helper()
	ctx := t.Context()
	_, attachment, err := c.Attachment(ctx, m.ID, m.Attachments[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	raw := must[io.ReadCloser](t)(c.Raw(ctx, m.ID))
	for want, file := range map[string]io.ReadCloser{"%PDF-1.7\nOrder 1042\n": attachment, "Message-ID: <": raw} {
		got := must[[]byte](t)(io.ReadAll(file))
		_ = file.Close() // read completely
		if !strings.Contains(string(got), want) {
			t.Errorf("download: got %q, want %q", got, want)
		}
	}
}

// replies sends from one inbox to another and replies from there.
func (in *install) replies(t *testing.T, c *client.Client, agent, human *gen.Inbox) {
	t.Helper()
	ctx := t.Context()
	sent, ok := must[gen.SendMessageRes](t)(c.SendMessage(ctx, &gen.MessageSend{
		To: client.To(agent.Address), Subject: "Purchase order 1042", Text: client.Body("Please confirm."),
	}, gen.SendMessageParams{InboxID: human.ID, IdempotencyKey: gen.NewOptString("order-1042")})).(*gen.Message)
	if !ok || sent.Status != string(gen.MessageStatusQueued) {
		t.Fatalf("sent: %+v", sent)
	}
	order := must[*gen.Message](t)(c.WaitForMessage(ctx, agent.ID, client.Wait{From: "*@" + mailDomain}))
	if order.Subject != sent.Subject || order.RfcMessageID != sent.RfcMessageID {
		t.Errorf("received %q %v, sent %q %v", order.Subject, order.RfcMessageID, sent.Subject, sent.RfcMessageID)
	}
	reply := must[client.Sent](t)(c.Reply(ctx, order.ID, gen.MessageReply{Text: client.Body("Confirmed.")})).Message
	if reply == nil || reply.ThreadID != order.ThreadID || reply.Subject != "Re: Purchase order 1042" {
		t.Fatalf("reply: %+v", reply)
	}
	back := must[*gen.Message](t)(c.WaitForMessage(ctx, human.ID, client.Wait{}))
	if back.ThreadID != sent.ThreadID || back.ExtractedText.Value != "Confirmed." {
		t.Errorf("the reply came as %+v", back)
	}
	list := must[*gen.MessageList](t)(c.ListInboxMessages(ctx, gen.ListInboxMessagesParams{InboxID: agent.ID, Limit: gen.NewOptInt(2)}))
	if len(list.Data) != 2 || !list.HasMore || list.Data[0].ID != reply.ID || list.Data[1].ID != order.ID {
		t.Errorf("the list has %d messages, more: %v", len(list.Data), list.HasMore)
	}
}

// wantClientError checks how the client reports an error.
func wantClientError(t *testing.T, c *client.Client) {
	t.Helper()
	_, err := c.GetInbox(t.Context(), gen.GetInboxParams{InboxID: "ibx_none"})
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Status != http.StatusNotFound || !errors.Is(err, client.ErrNotFound) || refused.RequestID == "" {
		t.Errorf("an unknown inbox: %v", err)
	}
}
