package contract_test

import (
	"regexp"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

// rule is a reason why a request that the contract allows may get 400.
type rule struct {
	operation, param, message *regexp.Regexp // of the error
	reason                    string
}

// paramRules apply to parameters and bodyRules to bodies. Each stands for a
// restriction that the contract cannot express in a machine-readable form.
var paramRules = []rule{
	{whatever, whatever, has(`must be UTF-8 text without NUL characters`), "a schema takes any text, databases do not"},
	{whatever, has(`^cursor$`), has(`^cursor must come from`), "a cursor is signed, and belongs to one list with its filters"},
	{has(`^waitForMessage$`), has(`^after$`), has(`message .* not found in this inbox`), "a schema does not know which resources exist"},
}

var bodyRules = []rule{
	{whatever, whatever, has(`must be UTF-8 text without NUL characters`), "a schema takes any text, databases do not"},
	{
		whatever, has(`^(email|contacts)\b|\.email$`), has(`is not an email address|has an invalid (local part|domain)`),
		"the checker of the schema's email is coarser than RFC 5321: one @ and no space after it",
	},
	{has(`^callMcp$`), has(`^$`), has(`^MCP: `), "JSON-RPC and MCP are contracts of their own"},
	{has(`^(create|update)Inbox$`), has(`^catch_all$`), has(`needs an inbox on a verified domain`), "a schema does not know the owner of the domain"},
	{
		has(`^createListEntry$`), has(`^pattern$`), has(`^pattern "`),
		"a pattern for addresses and domains in any script would be unreadable",
	},
	{has(`^createInbox$`), has(`^name$`), has(`results in an address of more than 254`), "a schema sees name and domain, not the address that they form"},
	{has(`^sendEmail(Batch)?$`), has(`^template$`), has(`not found in this account`), "a schema does not know which resources exist"},
	{has(`^(sendEmail|rescheduleEmail)$`), has(`^scheduledAt$`), has(`30 days ahead`), "a schema does not know what time it is"},
	{
		has(`^(previewTemplate|sendEmail(Batch)?)$`), has(`^(data|templateData|recipients\[\d+\]\.variables)\.`),
		has(`is an object or a list:|may not hold line breaks|has no value`), "a schema does not know what the template does with a value",
	},
	{has(`^create(Api)?Key$`), has(`^inbox_ids\[`), has(`is not an inbox of this account`), "a schema does not know which resources exist"},
	{has(`^(stop|resume)Sending$`), has(`^key_id$`), has(`must not be given with inbox_id`), "generators have no type for one field or the other, each with null"},
	{has(`^(create|update)Webhook$`), has(`^inbox_ids\[`), has(`(?s)inbox .* not found, or this key`), "a schema does not know which resources exist"},
	{has(`^sendEmail(Batch)?$`), has(`^subject$`), has(`required without a template`), "generators have no type for one field or the other"},
	{has(`^(create|update)Inbox$`), has(`^retention_days$`), has(`longest retention of this installation`), "a schema does not know the settings"},
	{has(`^createDomain$`), has(`^domain$`), has(`is not a domain name`), "a pattern for domain names in any script would be unreadable"},
	{has(`^create(Api)?Key$`), has(`^allowed_ips\[`), has(`must be a CIDR block`), "no schema has a format for blocks of addresses"},
	{whatever, has(`^expires_at$`), has(`must be in the future`), "a schema does not know what time it is"},
	{has(`^(sendEmail(Batch)?|rescheduleEmail)$`), whatever, has(`is the same field as \w+: give one of them`), "generators have no type for one spelling or the other"},
	{has(`^rescheduleEmail$`), has(`^scheduledAt$`), has(`is required`), "generators have no type for one spelling or the other"},
	{has(`^((send|replyTo)Message|sendEmail(Batch)?|(create|update|replace)Template)$`), has(`^text$`), has(`give text, html or both`), "a schema does not distinguish an empty text"},
	{has(`^updateDraft$`), has(`^text$`), has(`give text, html or both`), "a schema does not know the content of the draft"},
	{has(`Message$|^sendEmail$`), has(`^attachments\[\d+\]\.content(_t|T)ype$`), has(`is not a media type`), "a pattern for the grammar of RFC 2045 would be unreadable"},
	{has(`Message$|^sendEmail$`), has(`^attachments\[\d+\]\.filename$`), has(`is longer than 255 bytes`), "a schema counts characters, file systems count bytes"},
}

// ruleBook finds rules and records which were used.
type ruleBook struct {
	rules  []rule
	needed map[int]bool
}

func newRuleBook(rules []rule) *ruleBook { return &ruleBook{rules, map[int]bool{}} }

// allows reports whether a rule explains the error.
func (b *ruleBook) allows(op *contractcheck.Operation, param, message string) bool {
	for i, r := range b.rules {
		if r.operation.MatchString(op.OperationID) && r.param.MatchString(param) && r.message.MatchString(message) {
			b.needed[i] = true
			return true
		}
	}
	return false
}

// wantAllNeeded fails the test for unused rules.
func (b *ruleBook) wantAllNeeded(t *testing.T) {
	t.Helper()
	for i, r := range b.rules {
		if !b.needed[i] {
			t.Errorf("no request needs the rule about %s of %s (%s)", r.param, r.operation, r.reason)
		}
	}
}

var has, whatever = regexp.MustCompile, regexp.MustCompile(``)
