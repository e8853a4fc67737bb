package contract_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/store/storetest"
)

// unseen are the documented answers that this suite cannot get, each with the
// reason.
var unseen = []struct {
	operation string // empty: any
	status    int
	engine    storetest.Engine // empty: both
	reason    string
}{
	{"", 503, storetest.SQLite, "its file cannot be taken away from a running program; one write is held up until it gives up"},
}

// reportCoverage shows what was seen, and fails for what was documented and
// not seen.
func reportCoverage(t *testing.T, e storetest.Engine, check *contractcheck.Checker) {
	t.Helper()
	table := strings.TrimSpace(check.Table())
	if testing.Verbose() {
		t.Log("\n" + table)
	} else {
		t.Log(table[strings.LastIndexByte(table, '\n')+1:])
	}
	for _, op := range check.Operations() {
		for _, status := range op.Statuses() {
			if check.Seen(op.OperationID, status) == 0 && mayBeUnseen(op, status, e) == "" {
				t.Errorf("%s documents %d, which was never seen", op.OperationID, status)
			}
		}
	}
	for _, u := range unseen {
		if u.operation != "" && (u.engine == "" || u.engine == e) && check.Seen(u.operation, u.status) > 0 {
			t.Errorf("%s answered %d, so it need not be listed: %s", u.operation, u.status, u.reason)
		}
	}
}

// mayBeUnseen says why the suite need not see the answer; empty when it must.
func mayBeUnseen(op *contractcheck.Operation, status int, e storetest.Engine) string {
	if !built(op) && needsBuilding(status) {
		return "the operation is not built"
	}
	for _, u := range unseen {
		if (u.operation == "" || u.operation == op.OperationID) && u.status == status && (u.engine == "" || u.engine == e) {
			return u.reason
		}
	}
	return ""
}

// needsBuilding says whether only an operation that does its work answers so:
// keys, bodies and limits are looked at before.
func needsBuilding(status int) bool {
	switch status {
	case 404, 409, 410, 422:
		return true
	}
	return status < 400
}
