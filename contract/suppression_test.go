package contract_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

var suppressionCount atomic.Int64

// newSuppression adds a suppression and returns its address.
func (w *world) newSuppression(t *testing.T) string {
	t.Helper()
	email := fmt.Sprintf("gone%d@example.net", suppressionCount.Add(1))
	w.send(t, w.call("createSuppression").saying(`{"email":"`+email+`"}`)).want(t, http.StatusCreated)
	return email
}
