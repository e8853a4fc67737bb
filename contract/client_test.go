package contract_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store/storetest"
)

// bearer is a key as the generated client wants it.
type bearer string

// BearerAuth implements gen.SecuritySource.
func (b bearer) BearerAuth(context.Context, gen.OperationName) (gen.BearerAuth, error) {
	return gen.BearerAuth{Token: string(b)}, nil
}

// client is the generated client. Its exchanges are held against the contract
// too.
func (in *install) client(t *testing.T, key string) *gen.Client {
	t.Helper()
	c, err := gen.NewClient(in.api, bearer(key), gen.WithClient(&http.Client{
		Transport:     in.check.Transport(t, in.base),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// must ends the test on an error.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestGeneratedClient does the main job by the client that is generated from
// the contract: receive a mail, wait for its code, answer it.
func TestGeneratedClient(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e storetest.Engine) {
		in := start(t, e, newChecker(t), "POSTROOM_RATE_LIMITS=off")
		ctx, c := t.Context(), in.client(t, firstKey)
		newInbox := func(name string) *gen.Inbox {
			req := gen.NewOptInboxCreate(gen.InboxCreate{Name: gen.NewOptString(name), Metadata: gen.NewOptMetadata(gen.Metadata{
				"run": gen.NewFloat64MetadataValue(42), "note": gen.NewNullMetadataValue(struct{}{}),
			})})
			return must[*gen.Inbox](t)(c.CreateInbox(ctx, req, gen.CreateInboxParams{}))
		}
		agent, human := newInbox("agent"), newInbox("human")

		type waited struct {
			res *gen.WaitResult
			err error
		}
		found := make(chan waited, 1)
		go func() {
			res, err := c.WaitForMessage(ctx, gen.WaitForMessageParams{InboxID: agent.ID, Has: gen.NewOptWaitHas(gen.WaitHasCode)})
			found <- waited{res, err}
		}()
		in.deliver(t, agent.Address)
		w := <-found
		first := must[*gen.WaitResult](t)(w.res, w.err).Message.Value
		if x := first.Extracted.Value; x.Otp.Value != "482913" || x.ActionLink.Value != "https://app.example.org/confirm?token=abc" {
			t.Errorf("extracted %+v", x)
		}
		whole := must[*gen.Message](t)(c.GetMessage(ctx, gen.GetMessageParams{MessageID: first.ID}))
		if whole.Subject != "Your sign-in code is 482913" || whole.From.Value.Email != "ana@example.org" {
			t.Errorf("subject %q from %q", whole.Subject, whole.From.Value.Email)
		}
		in.downloads(t, c, whole)
		in.answers(t, c, agent, human)
		wantClientError(t, c)
	})
}

// downloads fetches the attachment of a message, and all of it.
func (in *install) downloads(t *testing.T, c *gen.Client, m *gen.Message) {
	t.Helper()
	ctx := t.Context()
	at := must[*gen.AttachmentDownload](t)(c.GetAttachment(ctx, gen.GetAttachmentParams{MessageID: m.ID, AttachmentID: m.Attachments[0].ID}))
	raw := must[*gen.GetMessageRawFound](t)(c.GetMessageRaw(ctx, gen.GetMessageRawParams{MessageID: m.ID}))
	for want, link := range map[string]url.URL{"%PDF-1.7\nOrder 1042\n": at.DownloadURL, "Message-ID: <": raw.Location} {
		res := must[gen.DownloadFileRes](t)(c.DownloadFile(ctx, gen.DownloadFileParams{Token: path.Base(link.Path)}))
		file, ok := res.(*gen.DownloadFileOKRawApplicationOctetStream)
		if !ok {
			t.Fatalf("download: %T", res)
		}
		got := must[[]byte](t)(io.ReadAll(file.Response.Body))
		_ = file.Response.Body.Close() // read to its end
		if !strings.Contains(string(got), want) {
			t.Errorf("download: got %q, want %q", got, want)
		}
	}
}

// answers sends from one inbox to another, and replies from there.
func (in *install) answers(t *testing.T, c *gen.Client, agent, human *gen.Inbox) {
	t.Helper()
	ctx := t.Context()
	sent, ok := must[gen.SendMessageRes](t)(c.SendMessage(ctx, &gen.MessageSend{
		To:      gen.NewEmailAddressRecipients(gen.EmailAddress(agent.Address)),
		Subject: "Purchase order 1042", Text: gen.NewOptString("Please confirm."),
	}, gen.SendMessageParams{InboxID: human.ID, IdempotencyKey: gen.NewOptString("order-1042")})).(*gen.Message)
	if !ok || sent.Status != string(gen.MessageStatusQueued) {
		t.Fatalf("sent: %+v", sent)
	}
	order := must[*gen.WaitResult](t)(c.WaitForMessage(ctx, gen.WaitForMessageParams{
		InboxID: agent.ID, From: gen.NewOptString("*@" + mailDomain),
	})).Message.Value
	if order.Subject != sent.Subject || order.RfcMessageID != sent.RfcMessageID {
		t.Errorf("received %q %v, sent %q %v", order.Subject, order.RfcMessageID, sent.Subject, sent.RfcMessageID)
	}
	reply, ok := must[gen.ReplyToMessageRes](t)(c.ReplyToMessage(ctx,
		&gen.MessageReply{Text: gen.NewOptString("Confirmed.")}, gen.ReplyToMessageParams{MessageID: order.ID})).(*gen.Message)
	if !ok || reply.ThreadID != order.ThreadID || reply.Subject != "Re: Purchase order 1042" {
		t.Fatalf("reply: %+v", reply)
	}
	back := must[*gen.WaitResult](t)(c.WaitForMessage(ctx, gen.WaitForMessageParams{InboxID: human.ID})).Message.Value
	if back.ThreadID != sent.ThreadID || back.ExtractedText.Value != "Confirmed." {
		t.Errorf("the reply came as %+v", back)
	}
	list := must[*gen.MessageList](t)(c.ListInboxMessages(ctx, gen.ListInboxMessagesParams{InboxID: agent.ID, Limit: gen.NewOptInt(2)}))
	if len(list.Data) != 2 || !list.HasMore || list.Data[0].ID != reply.ID || list.Data[1].ID != order.ID {
		t.Errorf("the list has %d messages, more: %v", len(list.Data), list.HasMore)
	}
}

// wantClientError looks at how the client tells of an error.
func wantClientError(t *testing.T, c *gen.Client) {
	t.Helper()
	_, err := c.GetInbox(t.Context(), gen.GetInboxParams{InboxID: "ibx_none"})
	var refused *gen.ErrorStatusCodeWithHeaders
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusNotFound || refused.Response.Error.Code != gen.ErrorCodeNotFound {
		t.Errorf("an unknown inbox: %v", err)
	}
}
