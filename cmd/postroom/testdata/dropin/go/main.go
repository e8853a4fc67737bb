// Runs operations of Resend's SDK for Go, as try.mjs does for those of Node.js. The SDK reads
// its address from RESEND_BASE_URL.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/resend/resend-go/v3"
)

const from = "Acme <hello@acme.test>"

func works(name string, run func()) {
	defer func() {
		if e := recover(); e != nil {
			log.Fatalf("%s: %v", name, e)
		}
	}()
	run()
	fmt.Println(name + ": works")
}

// refused wants an error that has text.
func refused[T any](name, text string, _ T, err error) {
	if err == nil || !strings.Contains(err.Error(), text) {
		log.Fatalf("%s: %v, want %q", name, err, text)
	}
	how := "refused"
	if strings.Contains(err.Error(), "Postroom has no") {
		how = "not mapped"
	}
	fmt.Println(name + ": " + how)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func want(is bool, got any) {
	if !is {
		panic(fmt.Sprintf("%+v", got))
	}
}

// until calls is until it is true.
func until(is func() bool) {
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(50 * time.Millisecond) {
		want(time.Now().Before(end), "too late")
	}
}

func read(url string) string {
	res := must(http.Get(url))
	defer res.Body.Close()
	return string(must(io.ReadAll(res.Body)))
}

func main() {
	c, ctx := resend.NewClient("re_123"), context.Background()
	email := func(subject string) *resend.SendEmailRequest {
		return &resend.SendEmailRequest{From: from, To: []string{"ann@shop.test"}, Subject: subject, Text: "Your code is 482913."}
	}
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	var sent, scheduled, received string

	works("Emails.SendWithOptions", func() {
		e := email("Welcome")
		e.Cc, e.ReplyTo, e.Html = []string{"carl@shop.test"}, "help@acme.test", `<p>482913 <img src="cid:logo"></p>`
		e.Headers, e.Tags = map[string]string{"X-Entity-Ref-ID": "1042"}, []resend.Tag{{Name: "flow", Value: "welcome"}}
		e.Attachments = []*resend.Attachment{
			{Filename: "terms.txt", Content: []byte("The terms")},
			{Filename: "logo.png", Content: []byte{137}, ContentId: "logo", ContentType: "image/png"},
		}
		options := &resend.SendEmailOptions{IdempotencyKey: "welcome/1"}
		sent = must(c.Emails.SendWithOptions(ctx, e, options)).Id
		again := must(c.Emails.SendWithOptions(ctx, e, options)).Id
		want(sent == again, again)
	})
	works("Emails.Send", func() {
		e := email("Later")
		e.ScheduledAt = later.Format(time.RFC3339)
		scheduled = must(c.Emails.Send(e)).Id
	})
	works("Emails.Get", func() {
		until(func() bool { return must(c.Emails.Get(sent)).LastEvent == "delivered" })
		e := must(c.Emails.Get(sent))
		want(e.Subject == "Welcome" && e.To[0] == "ann@shop.test", e)
	})
	works("Emails.Update", func() {
		must(c.Emails.Update(&resend.UpdateEmailRequest{Id: scheduled, ScheduledAt: later.Add(time.Hour).Format(time.RFC3339)}))
	})
	works("Emails.Cancel", func() {
		must(c.Emails.Cancel(scheduled))
		e := must(c.Emails.Get(scheduled))
		want(e.LastEvent == "canceled", e)
	})
	works("Batch.Send", func() {
		got := must(c.Batch.Send([]*resend.SendEmailRequest{email("One"), email("Two")}))
		want(len(got.Data) == 2, got)
	})
	works("Batch.SendWithOptions, permissive", func() {
		bad := email("Bad")
		bad.To = []string{"nobody"}
		options := &resend.BatchSendEmailOptions{BatchValidation: resend.BatchValidationPermissive}
		got := must(c.Batch.SendWithOptions(ctx, []*resend.SendEmailRequest{bad, email("Three")}, options))
		want(len(got.Data) == 1 && len(got.Errors) == 1 && got.Errors[0].Index == 0, got)
	})
	works("Emails.List", func() {
		all := must(c.Emails.List())
		want(len(all.Data) == 5 && all.Data[4].Id == sent, all)
		limit := 1
		next := must(c.Emails.ListWithOptions(ctx, &resend.ListOptions{Limit: &limit, After: &all.Data[3].Id}))
		want(len(next.Data) == 1 && next.Data[0].Id == sent && !next.HasMore, next)
	})
	works("Emails.Receiving.List", func() {
		for _, e := range must(c.Emails.Receiving.List()).Data {
			if e.Subject == "Welcome" {
				received = e.Id
			}
		}
		want(received != "", "not received")
	})
	works("Emails.Receiving.Get", func() {
		e := must(c.Emails.Receiving.Get(received))
		want(e.Headers["x-entity-ref-id"] == "1042" && len(e.Attachments) == 2, e)
	})
	works("Emails.Receiving.ListAttachments, GetAttachment", func() {
		for _, a := range must(c.Emails.Receiving.ListAttachments(received)).Data {
			if a.Filename == "terms.txt" {
				text := read(must(c.Emails.Receiving.GetAttachment(received, a.Id)).DownloadUrl)
				want(text == "The terms", text)
				return
			}
		}
		panic("no attachment")
	})
	works("Domains.Create, Get, List, Verify, Remove", func() {
		d := must(c.Domains.Create(&resend.CreateDomainRequest{Name: "mail.acme.example"}))
		want(len(d.Records) > 0, d)
		want(must(c.Domains.Get(d.Id)).Status == "pending", d)
		want(must(c.Domains.List()).Data[0].Name == d.Name, d)
		want(must(c.Domains.Verify(d.Id)) && must(c.Domains.Remove(d.Id)), d)
	})
	works("Templates.Create, Publish, Get, List, Update, Remove", func() {
		t := must(c.Templates.Create(&resend.CreateTemplateRequest{Name: "order", Subject: "Order {{{ORDER}}}", Html: "<p>{{{ORDER}}}</p>"}))
		must(c.Templates.Publish(t.Id))
		must(c.Templates.Update(t.Id, &resend.UpdateTemplateRequest{Name: "order", Html: "<p>Order {{{ORDER}}}</p>"}))
		want(must(c.Templates.Get(t.Id)).Name == "order" && must(c.Templates.List(nil)).Data[0].Id == t.Id, t)
		e := email("")
		e.Text, e.Template = "", &resend.EmailTemplate{Id: "order", Variables: map[string]any{"ORDER": 1042}}
		must(c.Emails.Send(e))
		must(c.Templates.Remove(t.Id))
	})
	works("Contacts.Create, Get, List, Update, Remove", func() {
		id := must(c.Contacts.Create(&resend.CreateContactRequest{Email: "ann@shop.test", FirstName: "Ann"})).Id
		update := &resend.UpdateContactRequest{Id: id, LastName: "Lee"}
		update.SetUnsubscribed(true)
		must(c.Contacts.Update(update))
		got := must(c.Contacts.Get(&resend.GetContactOptions{Id: "ann@shop.test"}))
		want(got.Id == id && got.FirstName == "Ann" && got.LastName == "Lee" && got.Unsubscribed, got)
		want(len(must(c.Contacts.List(&resend.ListContactsOptions{})).Data) == 1, got)
		must(c.Contacts.Remove(&resend.RemoveContactOptions{Id: id}))
	})
	works("Segments.List, Get", func() {
		segment := must(c.Segments.List()).Data[0]
		want(must(c.Segments.Get(segment.Id)).Name == segment.Name, segment)
	})
	works("Webhooks.Create, Get, List, Update, Remove, Verify", func() { webhooks(c, email("Hook")) })

	soon := email("x")
	soon.ScheduledAt = "in 1 min"
	response, err := c.Emails.Send(soon)
	refused("Emails.Send with ScheduledAt in words", "scheduled_at", response, err)
	attached := email("x")
	attached.Attachments = []*resend.Attachment{{Filename: "a", Path: "https://acme.test/a"}}
	response, err = c.Emails.Send(attached)
	refused("Emails.Send with attachments by path", "attachments[0].path", response, err)
	response, err = c.Emails.Send(&resend.SendEmailRequest{To: []string{"ann@shop.test"}, Subject: "x", Text: "x"})
	refused("Emails.Send without a sender", "from is required", response, err)
	domain, err := c.Domains.Create(&resend.CreateDomainRequest{Name: "mail.acme.example", Region: "eu-west-1"})
	refused("Domains.Create with a region", "region", domain, err)
	none := "Postroom has no"
	changed, err := c.Domains.Update("dom_1", &resend.UpdateDomainRequest{})
	refused("Domains.Update", none, changed, err)
	twice, err := c.Templates.Duplicate("tpl_1")
	refused("Templates.Duplicate", none, twice, err)
	files, err := c.Emails.ListAttachments(sent)
	refused("Emails.ListAttachments", none, files, err)
	keys, err := c.ApiKeys.List()
	refused("ApiKeys.List", none, keys, err)
	broadcasts, err := c.Broadcasts.List()
	refused("Broadcasts.List", none, broadcasts, err)
}

// webhooks makes an endpoint, and verifies the event of an email.
func webhooks(c *resend.Client, email *resend.SendEmailRequest) {
	var secret string
	verified := make(chan error, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var event struct {
			Type string
			Data struct{ Subject string }
		}
		err := json.Unmarshal(body, &event)
		if err == nil && (event.Type != "email.sent" || event.Data.Subject != "Hook") {
			err = fmt.Errorf("event %s", body)
		}
		if err == nil {
			err = c.Webhooks.Verify(&resend.VerifyWebhookOptions{Payload: string(body), WebhookSecret: secret, Headers: resend.WebhookHeaders{
				Id: r.Header.Get("svix-id"), Timestamp: r.Header.Get("svix-timestamp"), Signature: r.Header.Get("svix-signature"),
			}})
		}
		verified <- err
	}))
	defer receiver.Close()
	h := must(c.Webhooks.Create(&resend.CreateWebhookRequest{Endpoint: receiver.URL, Events: []string{"email.sent"}}))
	secret = h.SigningSecret
	want(must(c.Webhooks.List()).Data[0].Id == h.Id, h)
	must(c.Emails.Send(email))
	select {
	case err := <-verified:
		want(err == nil, err)
	case <-time.After(20 * time.Second):
		panic("no event")
	}
	status := "disabled"
	must(c.Webhooks.Update(h.Id, &resend.UpdateWebhookRequest{Status: &status}))
	want(must(c.Webhooks.Get(h.Id)).Status == status, h)
	must(c.Webhooks.Remove(h.Id))
}
