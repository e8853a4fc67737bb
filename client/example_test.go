package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

// A program creates an address, signs up with it, and waits for the code that
// arrives by mail.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.New(os.Getenv("POSTROOM_URL"), os.Getenv("POSTROOM_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	inbox, err := c.NewInbox(ctx, gen.InboxCreate{Name: client.Text("robot")})
	if err != nil {
		log.Fatal(err)
	}
	signUp(ctx, c, inbox) // with inbox.Address, at the shop
	code, err := c.WaitForCode(ctx, inbox.ID, client.Wait{From: "*@shop.example"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("The code is", code)
	// Output: The code is 482913
}

// signUp acts as the shop: it sends a code.
func signUp(ctx context.Context, c *client.Client, inbox *gen.Inbox) {
	_, err := c.SimulateMessage(ctx, &gen.MessageSimulate{
		From:    gen.NewOptNilAddress(gen.NewMailboxAddress("noreply@shop.example")),
		Subject: client.Text("Welcome to the shop"), Text: client.Body("Your verification code is 482913."),
	}, gen.SimulateMessageParams{InboxID: inbox.ID})
	if err != nil {
		log.Fatal(err)
	}
}

// With the policy approval, a sent message is a draft until it is approved.
func ExampleClient_Send() {
	ctx := context.Background()
	c := connect()
	inbox, err := c.NewInbox(ctx, gen.InboxCreate{SendPolicy: gen.NewOptSendPolicy(gen.SendPolicyApproval)})
	if err != nil {
		log.Fatal(err)
	}
	sent, err := c.Send(ctx, inbox.ID, gen.MessageSend{
		To: client.To("ana@example.org"), Subject: "Offer", Text: client.Body("We pay 900."),
	})
	if err != nil {
		log.Fatal(err)
	}
	if d := sent.Draft; d != nil {
		fmt.Println("waits for approval:", d.Subject, d.Status)
		_, err = c.RejectDraft(ctx, gen.NewOptDraftReject(gen.DraftReject{Reason: client.Text("too much")}), gen.RejectDraftParams{DraftID: d.ID})
		fmt.Println(err)
	}
	// Output:
	// waits for approval: Offer pending
	// <nil>
}

// Iterators fetch the pages of a list as needed.
func ExampleClient_InboxMessages() {
	ctx := context.Background()
	c := connect()
	inbox, err := c.NewInbox(ctx, gen.InboxCreate{})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		signUp(ctx, c, inbox)
	}
	for m, err := range c.InboxMessages(ctx, gen.ListInboxMessagesParams{InboxID: inbox.ID, Limit: gen.NewOptInt(2)}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Subject, m.Extracted.Value.Codes)
	}
	// Output:
	// Welcome to the shop [482913]
	// Welcome to the shop [482913]
	// Welcome to the shop [482913]
}

// Compare errors by their code.
func ExampleError() {
	_, err := connect().GetInbox(context.Background(), gen.GetInboxParams{InboxID: "ibx_none"})
	fmt.Println(errors.Is(err, client.ErrNotFound))
	if refused, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(refused.Status, refused.Code)
	}
	// Output:
	// true
	// 404 not_found
}

// Events follow from now on, across reconnects.
func ExampleClient_Events() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := connect()
	inbox, err := c.NewInbox(ctx, gen.InboxCreate{})
	if err != nil {
		log.Fatal(err)
	}
	before, err := lastEvent(ctx, c, inbox) // the position to resume from
	if err != nil {
		log.Fatal(err)
	}
	signUp(ctx, c, inbox)
	for e, err := range c.Events(ctx, client.Stream{InboxID: inbox.ID, LastEventID: before}) {
		if err != nil {
			log.Fatal(err)
		}
		m, err := e.Message()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Type, m.Subject)
		break
	}
	// Output: message.received Welcome to the shop
}

// lastEvent creates an event and returns its id.
func lastEvent(ctx context.Context, c *client.Client, inbox *gen.Inbox) (string, error) {
	signUp(ctx, c, inbox)
	for e, err := range c.Events(ctx, client.Stream{InboxID: inbox.ID, LastEventID: "evt_none"}) {
		if err != nil || e.Type != client.StreamGap {
			return e.ID, err
		}
	}
	return "", nil
}

func connect() *client.Client {
	c, err := client.New(os.Getenv("POSTROOM_URL"), os.Getenv("POSTROOM_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	return c
}
