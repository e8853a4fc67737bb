package web

import (
	"cmp"
	_ "embed" // the examples
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// started is what the first page shows until the user dismisses it.
type started struct {
	Inbox    *gen.Inbox // the newest one, or nil
	Received *gen.Message
	Key      bool
	Secret   string // of the key that was just created here, or empty
	Used     bool   // a program used a key
	Domain   bool
	Snippets []snippet
}

// startCookie remembers that the user dismissed the first steps.
const startCookie = "postroom_started"

func (d *Dashboard) dismissStart(p *page) error {
	p.setCookie(startCookie, "1", int(themeTTL.Seconds()))
	return p.goTo("/")
}

// started reads how far the account is.
func (d *Dashboard) started(p *page) (*started, error) {
	one := gen.NewOptInt(1)
	inboxes, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: one})
	if err != nil {
		return nil, err
	}
	received, err := d.api.ListMessages(p.ctx(), gen.ListMessagesParams{Limit: one, Direction: gen.NewOptDirection(gen.DirectionIn)})
	if err != nil {
		return nil, err
	}
	keys, err := d.api.ListApiKeys(p.ctx(), gen.ListApiKeysParams{})
	if err != nil {
		return nil, err
	}
	s := &started{}
	s.Key = len(keys.Data) > 1 // the first one belongs to the operator
	s.Used = slices.ContainsFunc(keys.Data[:max(0, len(keys.Data)-1)], func(k gen.ApiKey) bool { return !k.LastUsedAt.Null })
	if len(inboxes.Data) > 0 {
		s.Inbox = &inboxes.Data[0]
	}
	if len(received.Data) > 0 {
		s.Received = &received.Data[0]
	}
	domains, err := d.api.ListDomains(p.ctx(), gen.ListDomainsParams{Limit: one})
	if err != nil {
		return nil, err
	}
	s.Domain = len(domains.Data) > 0
	s.Snippets = d.snippets(append(inboxes.Data, gen.Inbox{})[0])
	s.Secret, err = d.store.TakeNote(p.ctx(), p.session(), "/")
	if errors.Is(err, store.ErrNotFound) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.Snippets = withKey(s.Snippets, s.Secret)
	return s, d.store.LeaveNote(p.ctx(), p.session(), "/", s.Secret) // the later steps show it again
}

// snippet is an example for one tool, to copy.
type snippet struct{ Name, Title, Code string }

// snippets are examples that wait for a code in an inbox, for this installation.
// Without an inbox they have a placeholder for it.
func (d *Dashboard) snippets(in gen.Inbox) []snippet {
	return d.filled(examples, "{id}", cmp.Or(in.ID, "ibx_…"), "{address}", cmp.Or(in.Address, "you@example.com"))
}

// filled returns examples for this installation, with values for their placeholders.
func (d *Dashboard) filled(examples []snippet, values ...string) []snippet {
	r := strings.NewReplacer(append(values, "{host}", strings.TrimSuffix(d.cfg.BaseURL.String(), "/"))...)
	all := slices.Clone(examples)
	for i := range all {
		all[i].Code = r.Replace(all[i].Code)
	}
	return all
}

// withKey puts a key into examples.
func withKey(snippets []snippet, key string) []snippet {
	with := strings.NewReplacer("$POSTROOM_KEY", key, "${POSTROOM_KEY}", key, "sk_live_...", key,
		"process.env.POSTROOM_KEY", strconv.Quote(key), `os.environ["POSTROOM_KEY"]`, strconv.Quote(key), `os.Getenv("POSTROOM_KEY")`, strconv.Quote(key))
	for i := range snippets {
		snippets[i].Code = with.Replace(snippets[i].Code)
	}
	return snippets
}

// waitExample starts the part of the curl example that only reads.
const waitExample = "# Wait for the newest code"

//go:embed templates/examples.txt
var exampleText string

// examples are the snippets that wait for a code, sendExamples those of a key that only
// sends emails. POSTROOM_KEY is an API key in the environment.
var examples, sendExamples = examplesOf("wait"), examplesOf("send")

// examplesOf reads the examples of one use: each begins with "== use name title".
func examplesOf(use string) (all []snippet) {
	for part := range strings.SplitSeq(exampleText, "== ") {
		head, code, _ := strings.Cut(part, "\n")
		if about := strings.SplitN(head, " ", 3); about[0] == use {
			all = append(all, snippet{about[1], about[2], strings.TrimSuffix(code, "\n")})
		}
	}
	return all
}

// simulate puts a message with a code into an inbox, as a server would send it.
func (d *Dashboard) simulate(p *page) error {
	id := p.id()
	to := "/inboxes/" + id
	if p.form.Get("start") == "1" {
		to = "/"
	}
	_, err := d.api.SimulateMessage(p.ctx(), &gen.MessageSimulate{
		From:    gen.NewOptNilAddress(gen.NewMailboxAddress("noreply@shop.example")),
		Subject: gen.NewOptString("Welcome to the shop"),
		Text:    gen.NewOptNilString("Welcome!\n\nYour verification code is 482913. It is valid for 10 minutes.\n"),
	}, gen.SimulateMessageParams{InboxID: id})
	if isMissing(err) {
		return errNoPage
	}
	return p.result(err, to, to, "Simulated message received.")
}
