// Package signup tests a sign-up: go mod tidy && go test
package signup

import (
	"net/smtp"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

func TestSignUp(t *testing.T) {
	ctx := t.Context()
	mail, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			Image:        "ghcr.io/postroom/postroom",
			Cmd:          []string{"dev"},
			ExposedPorts: []string{"8025/tcp", "1025/tcp"},
			WaitingFor:   wait.ForHTTP("/health").WithPort("8025/tcp"),
		},
		Started: true,
	})
	testcontainers.CleanupContainer(t, mail)
	must(t, err)
	api, err := mail.PortEndpoint(ctx, "8025/tcp", "http")
	must(t, err)
	server, err := mail.PortEndpoint(ctx, "1025/tcp", "")
	must(t, err)

	postroom, err := client.New(api, "dev")
	must(t, err)
	inbox, err := postroom.NewInbox(ctx, gen.InboxCreate{})
	must(t, err)
	text := "From: Shop <noreply@shop.example>\r\nSubject: Welcome\r\n\r\nYour verification code is 482913.\r\n"
	must(t, smtp.SendMail(server, nil, "noreply@shop.example", []string{inbox.Address}, []byte(text)))
	code, err := postroom.WaitForCode(ctx, inbox.ID, client.Wait{})
	must(t, err)
	if code != "482913" {
		t.Errorf("the code is %s", code)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
