package contract_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

// reportCoverage prints what was seen, and fails the test for documented
// responses that were not seen.
func reportCoverage(t *testing.T, check *contractcheck.Checker) {
	t.Helper()
	table := strings.TrimSpace(check.Table())
	if testing.Verbose() {
		t.Log("\n" + table)
	} else {
		t.Log(table[strings.LastIndexByte(table, '\n')+1:])
	}
	for _, op := range check.Operations() {
		for _, status := range op.Statuses() {
			if check.Seen(op.OperationID, status) == 0 {
				t.Errorf("%s documents %d, which was never seen", op.OperationID, status)
			}
		}
	}
}

// logExchanges logs how many exchanges were validated against the contract.
func logExchanges(t *testing.T, check *contractcheck.Checker) {
	t.Helper()
	t.Logf("%d exchanges held against the contract", check.Exchanges())
}
