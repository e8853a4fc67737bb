package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

// Environment variables of commands that call a server.
const (
	ServerEnv = "POSTROOM_URL"
	KeyEnv    = "POSTROOM_KEY"
)

const (
	serverFlag    = "server"
	keyFlag       = "key"
	jsonFlag      = "json"
	jqFlag        = "jq"
	defaultServer = "http://127.0.0.1:8080"
)

// DevAddress is the default listen address of `postroom dev`, and DevKey what a client
// sends it that insists on a key.
const (
	DevAddress = "127.0.0.1:8025"
	DevKey     = "dev"
)

// api is a client for a server, with the output for its responses.
type api struct {
	*client.Client
	output
	server string // base URL
	key    string
}

// overAPI turns cmd into a command that calls a server. It needs only the
// server's URL and a key, and works from any machine.
func (p Program) overAPI(cmd *cobra.Command, run func(ctx context.Context, a *api, args []string) error) *cobra.Command {
	cmd.Flags().String(serverFlag, "", "address of the server ["+ServerEnv+"] (default: that of the profile, or "+defaultServer+")")
	cmd.Flags().String(keyFlag, "", "API key ["+KeyEnv+"]; other users of this machine can see command lines")
	cmd.Flags().String(profileFlag, "", "profile of the login command ["+ProfileEnv+"]")
	cmd.Flags().Bool(jsonFlag, false, "print the JSON response of the API")
	cmd.Flags().String(jqFlag, "", "print what this jq expression selects from the JSON, such as .id")
	p.completeInboxes(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := p.api(cmd)
		if err != nil {
			return err
		}
		return a.explain(run(cmd.Context(), a, args))
	}
	return cmd
}

// lookup returns the id of what a name names, which may be an id already.
type lookup func(a *api, ctx context.Context, name string) (id string, err error)

func (*api) byID(_ context.Context, id string) (string, error) { return id, nil }

// named is overAPI for a command whose argument names something that find finds.
func (p Program) named(cmd *cobra.Command, find lookup, run func(ctx context.Context, a *api, id string) error) *cobra.Command {
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		id, err := find(a, ctx, args[0])
		if err != nil {
			return err
		}
		return run(ctx, a, id)
	})
}

func (p Program) api(cmd *cobra.Command) (*api, error) {
	asJSON, err := cmd.Flags().GetBool(jsonFlag)
	if err != nil {
		return nil, err
	}
	out := output{w: p.Stdout, json: asJSON, terminal: p.Terminal}
	if text := cmd.Flags().Lookup(jqFlag).Value.String(); text != "" {
		out.json = true
		if out.query, err = newQuery(text); err != nil {
			return nil, err
		}
	}
	to, err := p.access(cmd)
	if err != nil {
		return nil, err
	}
	return p.connect(to, out)
}

// connect returns a client for a server.
func (p Program) connect(to profile, out output) (*api, error) {
	c, err := client.New(to.Server, to.Key, client.WithUserAgent("postroom-cli/"+p.Version), client.WithRetries(3, 90*time.Second))
	if err != nil {
		return nil, UsageError{errors.New(strings.TrimPrefix(err.Error(), "postroom: "))}
	}
	return &api{Client: c, output: out, server: to.Server, key: to.Key}, nil
}

const howToGetAKey = "create one on the server with `postroom key create --name NAME`"

// explain adds advice to an API error where there is any. Text from the server is
// shown without terminal control characters.
func (a *api) explain(err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return &Explained{a.whatToDo(refused), err}
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return &Explained{fmt.Sprintf("no server at %s: start `postroom serve`, or set another server with --%s or %s", a.server, serverFlag, ServerEnv), err}
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return &Explained{fmt.Sprintf("host %s not found: check --%s or %s", clean(name.Name), serverFlag, ServerEnv), err}
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return &Explained{fmt.Sprintf("call %s: %v", a.server, err), err}
	}
	return err
}

func (a *api) whatToDo(refused *client.Error) string {
	text := clean(refused.Error())
	for _, d := range refused.Details {
		if !strings.Contains(text, d.Message) {
			text += "; " + clean(d.Param+": "+d.Message)
		}
	}
	switch {
	case errors.Is(refused, client.ErrUnauthorized):
		text += "; " + howToGetAKey
	case refused.Code == "" || errors.Is(refused, client.ErrRouteNotFound):
		text += "; is " + a.server + " the address of a Postroom server?"
	case refused.RetryAfter > 0:
		text += fmt.Sprintf("; try again in %v", refused.RetryAfter)
	}
	if !strings.Contains(text, a.server) {
		text += "; asked " + a.server
	}
	if refused.Status >= 500 && refused.RequestID != "" {
		text += " (" + clean(refused.RequestID) + " in its log)"
	}
	return text
}

// Explained is an error with advice for the user.
type Explained struct {
	Text  string
	Cause error
}

func (e *Explained) Error() string { return e.Text }
func (e *Explained) Unwrap() error { return e.Cause }

// inboxID returns the id of an inbox, given its id or address.
func (a *api) inboxID(ctx context.Context, name string) (string, error) {
	if !strings.Contains(name, "@") {
		return name, nil
	}
	found, err := a.ListInboxes(ctx, gen.ListInboxesParams{Address: gen.NewOptString(name)})
	if err != nil {
		return "", err
	}
	if len(found.Data) == 1 {
		return found.Data[0].ID, nil
	}
	return "", &Explained{fmt.Sprintf("inbox %s not found at %s", clean(name), a.server), client.ErrNotFound}
}
