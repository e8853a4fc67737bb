package mcp

import (
	"path"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
)

// suppressionPages bounds how many pages of suppressions, 100 each, are read.
const suppressionPages = 10

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
		address := text(in["address"])
		if !plain.MatchString(address) {
			address = "the address of the inbox"
		}
		d.found("address", "Senders must use exactly %s, optionally with a +tag before the @.", address)
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
	d.receivingDomain(text(in["domain"]))
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
			if text(e["type"]) == "message.blocked" {
				if isFrom(text(of["from"]), from) {
					blocked++
					last = text(e["created_at"])
				}
			} else if isFrom(text(object(of["from"])["email"]), from) {
				held++
			}
		}
		if args["cursor"] = text(l["cursor"]); args["cursor"] == "" {
			break
		}
	}
	if blocked > 0 {
		d.found("blocked", "The lists of the account refused %d message(s) in 30 days, the last at %s. Only a user should change the lists.", blocked, last)
		if d.verdict == "not_arrived" {
			d.verdict = "blocked"
		}
	}
	if held > 0 {
		d.found("quarantined", "%d message(s) are in quarantine until a person releases them.", held)
		if d.verdict == "not_arrived" || d.verdict == "blocked" {
			d.verdict = "quarantined"
		}
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
		d.found("waits_for_approval", "%d draft(s) of this inbox need approval and are not sent yet, the newest %s.",
			len(pending), text(object(pending[0])["id"]))
		if d.verdict == "not_arrived" {
			d.verdict = "waits_for_approval"
		}
	}
}

// suppressions reports which recipients are suppressed, and why.
func (d *diagnosis) suppressions() {
	var wanted []string
	for _, v := range d.recipients {
		wanted = append(wanted, strings.ToLower(text(object(v)["email"])))
	}
	args := map[string]string{"limit": "100"}
	for range suppressionPages {
		l := d.look("suppressions", gen.ListSuppressionsOperation, args)
		if l == nil {
			return
		}
		for _, v := range list(l["data"]) {
			s := object(v)
			if i := slices.Index(wanted, strings.ToLower(text(s["email"]))); i >= 0 {
				d.found("on_suppression_list", "Recipient %d is suppressed since %s, reason %s.",
					i+1, text(s["created_at"]), text(s["reason"]))
			}
		}
		if args["cursor"] = text(l["cursor"]); args["cursor"] == "" {
			return
		}
	}
	d.notChecked = append(d.notChecked, "suppressions: the list is long; older entries were not checked")
}

// sending reports whether the account may send.
func (d *diagnosis) sending() {
	u := d.look("limits", gen.GetUsageOperation, nil)
	if paused, _ := object(u["sending"])["paused"].(bool); paused {
		d.found("sending_paused", "Sending is paused for this account since %s. get_usage has the reason.", text(object(u["sending"])["paused_at"]))
	}
}

// domain reports whether the sender's domain is ready for sending.
func (d *diagnosis) domain(from string) {
	name := strings.ToLower(from[strings.LastIndexByte(from, '@')+1:])
	dom, _ := d.domainOf(name)
	if dom != nil && text(dom["status"]) != "verified" {
		d.found("domain_not_verified", "The sender's domain is %s: Postroom does not send mail from it.", text(dom["status"]))
	}
	for _, record := range missing(dom, "DKIM", "SPF", "RETURN_PATH", "DMARC") {
		d.found("dns_record_missing", "The %s record of the sender's domain was not found in DNS. Mail without it is often marked as spam.", record)
	}
}

// receivingDomain reports whether mail for a domain can reach the service.
func (d *diagnosis) receivingDomain(name string) {
	dom, checked := d.domainOf(strings.ToLower(name))
	if checked && dom == nil {
		d.found("domain", "The address is on the mail domain of the installation. The operator is responsible for its MX record.")
	}
	for _, record := range missing(dom, "MX") {
		d.found("dns_record_missing", "The %s record of the address's domain was not found in DNS: other servers cannot deliver mail to it.", record)
	}
}

// domainOf returns the account's domain of this name, or nil. checked reports
// whether the caller may list domains.
func (d *diagnosis) domainOf(name string) (dom map[string]any, checked bool) {
	l := d.look("domain", gen.ListDomainsOperation, map[string]string{"limit": "100"})
	for _, v := range list(l["data"]) {
		if dom := object(v); text(dom["domain"]) == name {
			return dom, true
		}
	}
	return nil, l != nil
}

// missing returns those of the records that the domain lacks.
func missing(dom map[string]any, records ...string) []string {
	var out []string
	for _, v := range list(dom["dns_records"]) {
		r := object(v)
		if name := text(r["record"]); slices.Contains(records, name) && text(r["status"]) != "verified" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
