package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postroom/postroom/gen"
)

// lookups are the operations that a diagnosis uses, and the search for an inbox. They
// run with the caller's permissions. A report lists what the caller may not read.
var lookups = []gen.OperationName{
	gen.GetMessageOperation, gen.GetEmailOperation, gen.GetInboxOperation, gen.ListInboxesOperation, gen.ListInboxMessagesOperation, gen.ListInboxDraftsOperation,
	gen.ListDomainsOperation, gen.GetUsageOperation, gen.ListEventsOperation,
}

func diagnoseTool() *tool {
	id := func(what string) schema { return schema{"type": "string", "maxLength": 40, "description": what} }
	return &tool{
		name: "diagnose_delivery", title: "Diagnose a delivery", hints: reads, mail: true, run: diagnose,
		operation: gen.GetMessageOperation, others: []gen.OperationName{gen.GetEmailOperation},
		description: "Explains why a message arrived or did not. Give message_id or email_id for one that was sent or received, " +
			"or inbox_id, and from if known, for an expected message that is missing.",
		changed: map[string]schema{
			"message_id": id("A message, msg_…"), "email_id": id("An email, em_…"), "inbox_id": id("The inbox of the expected message, ibx_…"),
			"from": {"type": "string", "maxLength": 254, "description": "The expected sender: an address, *@domain or *@*.domain."},
		},
		ownInput: true,
	}
}

// diagnosis collects the findings.
type diagnosis struct {
	ctx context.Context //nolint:containedctx // of the one call that it is made for
	s   *server

	verdict, summary string
	findings         []any
	recipients       []any
	notChecked       []any
}

// diagnose implements diagnose_delivery.
func diagnose(ctx context.Context, s *server, _ *tool, args arguments, _ *sdk.CallToolRequest) (map[string]any, error) {
	given := map[string]string{}
	for _, name := range []string{"message_id", "email_id", "inbox_id", "from"} {
		v, err := args.take(name)
		if err != nil {
			return nil, err
		}
		given[name] = v
	}
	d := &diagnosis{ctx: ctx, s: s, findings: []any{}, recipients: []any{}, notChecked: []any{}}
	var err error
	switch {
	case given["message_id"] != "" && given["email_id"] != "":
		err = invalid("give message_id or email_id, not both")
	case given["message_id"] != "":
		err = d.message(given["message_id"])
	case given["email_id"] != "":
		err = d.email(given["email_id"])
	case given["inbox_id"] != "":
		err = d.expected(given["inbox_id"], given["from"])
	default:
		err = invalid("give message_id, email_id or inbox_id")
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"object": "delivery_diagnosis", "verdict": d.verdict, "summary": d.summary,
		"findings": d.findings, "recipients": d.recipients, "not_checked": d.notChecked,
	}, nil
}

// get calls one of the lookups.
func (d *diagnosis) get(op gen.OperationName, args map[string]string) (map[string]any, error) {
	raw := arguments{}
	for name, v := range args {
		if name == "limit" {
			raw[name] = json.RawMessage(v)
		} else {
			raw[name], _ = json.Marshal(v) // cannot fail for a string
		}
	}
	return d.s.api.call(d.ctx, d.s.also[op], raw, "", false)
}

// look is like get, for data that a diagnosis can do without.
func (d *diagnosis) look(what string, op gen.OperationName, args map[string]string) map[string]any {
	response, err := d.get(op, args)
	if err == nil {
		return response
	}
	why := "not available"
	if r, refused := err.(*refusal); refused { //nolint:errorlint // this package's, and never wrapped
		why = r.code
	}
	d.notChecked = append(d.notChecked, what+": "+why)
	return nil
}

func (d *diagnosis) found(code, format string, args ...any) {
	d.findings = append(d.findings, map[string]any{"code": code, "explanation": fmt.Sprintf(format, args...)})
}

// message describes an inbox message, received or sent.
func (d *diagnosis) message(id string) error {
	m, err := d.get(gen.GetMessageOperation, map[string]string{"message_id": id})
	if err != nil {
		return err
	}
	if text(m["direction"]) == "in" {
		d.verdict = "arrived"
		d.summary = fmt.Sprintf("The message was received at %s and is in inbox %s.", text(m["received_at"]), text(m["inbox_id"]))
		if auth := object(m["auth"]); text(auth["internal"]) == "pass" {
			d.found("authentication", "The account %s of this installation sent the message, and may use the address in from.",
				text(auth["internal_account"]))
		} else if auth != nil {
			d.found("authentication", "SPF %s, DKIM %s, DMARC %s: the sender is verified if DMARC passes.",
				text(auth["spf"]), text(auth["dkim"]), text(auth["dmarc"]))
		}
		return nil
	}
	d.sent(m, text(object(m["from"])["email"]))
	return nil
}

// email describes an email that was sent without an inbox.
func (d *diagnosis) email(id string) error {
	e, err := d.get(gen.GetEmailOperation, map[string]string{"id": id})
	if err != nil {
		return err
	}
	from := text(e["from"])
	if at := strings.LastIndexByte(from, '<'); at >= 0 {
		from = strings.TrimSuffix(from[at+1:], ">")
	}
	d.sent(e, from)
	if at := text(e["scheduled_at"]); text(e["status"]) == "scheduled" {
		d.found("scheduled", "It is scheduled for %s.", at)
	}
	return nil
}

// sent describes the delivery to each recipient.
func (d *diagnosis) sent(m map[string]any, from string) {
	arrived, ended := 0, 0
	d.recipients = list(m["recipients"])
	for i, v := range d.recipients {
		r := object(v)
		who := fmt.Sprintf("recipient %d", i+1) // the list of recipients has the address, fenced
		switch status := text(r["status"]); status {
		case "delivered", "opened", "clicked":
			arrived++
			d.found(status, "The mail server of %s accepted the message.", who)
		case "sent":
			d.found(status, "The relay accepted the message for %s. The further delivery is unknown.", who)
		case "bounced", "failed", "complained", "suppressed", "cancelled":
			ended++
			d.found(status, ends[status], who)
		default:
			d.found(status, "The message to %s is in delivery: %v attempt(s) so far. Postroom retries after a transient failure.", who, r["attempts"])
		}
	}
	all := len(d.recipients)
	switch {
	case all > 0 && arrived == all:
		d.verdict = "arrived"
	case all > 0 && ended == all:
		d.verdict = "not_arrived"
	case arrived > 0:
		d.verdict = "partly_arrived"
	default:
		d.verdict = "under_way"
	}
	d.summary = fmt.Sprintf("The status is %s: delivered to %d of %d recipient(s), failed for %d.", text(m["status"]), arrived, all, ended)
	if test, _ := m["test_mode"].(bool); test {
		d.found("test_mode", "It was sent in test mode: nothing was delivered, and the result is simulated.")
	}
	if arrived < all {
		d.sending()
		d.domain(from, "DKIM", "SPF", "RETURN_PATH", "DMARC")
	}
}

// ends explain the final states of a recipient.
var ends = map[string]string{
	"bounced":    "%s refused the message. last_response is the reply of the server.",
	"failed":     "The message to %s could not be delivered. last_response has the reason.",
	"complained": "%s reported the message as spam and is now suppressed.",
	"suppressed": "%s is suppressed, so nothing was sent. Only a user who knows the reason should remove the suppression.",
	"cancelled":  "The message to %s was cancelled before it was sent.",
}

// expected reports whether an expected message is in an inbox, and if not, why.
func (d *diagnosis) expected(inbox, from string) error {
	in, err := d.get(gen.GetInboxOperation, map[string]string{"inbox_id": inbox})
	if err != nil {
		return err
	}
	args := map[string]string{"inbox_id": inbox, "direction": "in", "limit": "5"}
	if from != "" {
		args["from"] = from
	}
	arrived, err := d.get(gen.ListInboxMessagesOperation, args)
	if err != nil {
		return err
	}
	whose := "Mail"
	if from != "" {
		whose = "Mail from that sender"
	}
	if came := list(arrived["data"]); len(came) > 0 {
		d.verdict, d.summary = "arrived", whose+" has arrived in this inbox."
		for _, v := range came {
			m := object(v)
			d.found("received", "Message %s was received at %s.", text(m["id"]), text(m["received_at"]))
		}
	} else {
		d.verdict, d.summary = "not_arrived", whose+" has not arrived in this inbox."
		d.found("address", "Senders must use exactly %s, optionally with a +tag before the @.", text(in["address"]))
	}
	d.lists(inbox, from)
	switch status := text(in["status"]); status {
	case "expired":
		d.found("inbox_expired", "The inbox expired at %s and refuses mail (550). Set expires_at to a later time or to null to reactivate it.", text(in["expires_at"]))
	case "suspended":
		d.found("inbox_suspended", "The inbox is suspended and refuses mail. The operator suspended it, or its domain was deleted.")
	}
	if text(in["send_policy"]) == "approval" {
		d.drafts(inbox)
	}
	d.domain("@"+text(in["domain"]), "MX")
	return nil
}

// eventPages bounds how many pages of events, 100 each, are read.
const eventPages = 10

// lists reports which messages of the sender the lists of the account put into quarantine
// or refused. The events of quarantine are deleted with the message, or when it is
// released.
func (d *diagnosis) lists(inbox, from string) {
	args := map[string]string{"inbox_id": inbox, "events": "message.quarantined,message.blocked", "limit": "100"}
	held, blocked, last := 0, 0, ""
	for range eventPages {
		l := d.look("lists of senders", gen.ListEventsOperation, args)
		for _, v := range list(l["data"]) {
			e := object(v)
			of := object(e["data"])
			if text(e["type"]) == "message.blocked" && isFrom(text(of["from"]), from) {
				blocked++
				last = text(e["created_at"])
			} else if isFrom(text(object(of["from"])["email"]), from) && text(e["type"]) == "message.quarantined" {
				held++
			}
		}
		if args["cursor"] = text(l["cursor"]); args["cursor"] == "" {
			break
		}
	}
	if held > 0 {
		d.instead("quarantined", "%d message(s) are in quarantine until a person releases them.", held)
	}
	if blocked > 0 {
		d.instead("blocked", "The lists of the account refused %d message(s) in 30 days, the last at %s. Only a user should change the lists.",
			blocked, last)
	}
}

// instead adds a finding, whose code replaces not_arrived.
func (d *diagnosis) instead(code, format string, args ...any) {
	d.found(code, format, args...)
	if d.verdict == "not_arrived" {
		d.verdict = code
	}
}

// isFrom reports whether an address matches a filter: an address, a pattern with *, or ""
// for all.
func isFrom(address, filter string) bool {
	if filter == "" {
		return true
	}
	ok, err := path.Match(strings.ToLower(filter), strings.ToLower(address))
	return ok && err == nil
}

// drafts reports whether messages of the inbox wait for approval: the expected
// sender may not have received one yet.
func (d *diagnosis) drafts(inbox string) {
	l := d.look("drafts", gen.ListInboxDraftsOperation, map[string]string{"inbox_id": inbox, "status": "pending", "limit": "100"})
	if pending := list(l["data"]); len(pending) > 0 {
		d.instead("waits_for_approval", "%d draft(s) of this inbox need approval and are not sent yet, the newest %s.",
			len(pending), text(object(pending[0])["id"]))
	}
}

// sending reports whether the account may send.
func (d *diagnosis) sending() {
	u := d.look("limits", gen.GetUsageOperation, nil)
	if paused, _ := object(u["sending"])["paused"].(bool); paused {
		d.found("sending_paused", "Sending is paused for this account since %s. get_usage has the reason.", text(object(u["sending"])["paused_at"]))
	}
}

// domain reports what the domain of an address lacks of these records. The operator is
// responsible for the domain of the installation, which is not among the account's.
func (d *diagnosis) domain(address string, records ...string) {
	name := strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
	l := d.look("domain", gen.ListDomainsOperation, map[string]string{"limit": "100"})
	domains := slices.DeleteFunc(list(l["data"]), func(v any) bool { return text(object(v)["domain"]) != name })
	if len(domains) == 0 {
		return
	}
	dom := object(domains[0])
	if status := text(dom["status"]); status != "verified" {
		d.found("domain_not_verified", "The domain of the address is %s: Postroom does not send mail from it.", status)
	}
	for _, record := range records {
		if slices.ContainsFunc(list(dom["dns_records"]), func(v any) bool {
			return text(object(v)["record"]) == record && text(object(v)["status"]) != "verified"
		}) {
			d.found("dns_record_missing", "The %s record of the domain was not found in DNS. Without MX no mail arrives; "+
				"without the others, mail is often marked as spam.", record)
		}
	}
}
