package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInboxIDsPage compares the table in docs/security.md with the contract, row
// by row.
func TestInboxIDsPage(t *testing.T) {
	t.Parallel()

	var want []string
	for _, op := range contractOperations(t) {
		rule, keyed := op.Extensions[inboxIDsKey].(string)
		if keyed {
			want = append(want, fmt.Sprintf("| `%s` | %s |", op.name, inboxIDsRules[rule]))
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| operation | with `inbox_ids` |\n| --- | --- |\n")
	if !ok {
		t.Fatal("docs/security.md has no table of operations")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	got := strings.Split(strings.TrimSpace(table), "\n")
	if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
		t.Errorf("docs/security.md differs from the contract, -want +got:\n%s\nthe table:\n%s", d, strings.Join(want, "\n"))
	}
}

// TestInboxIDsAreChecked leaves the rule out, misspells it, and gives it to an
// operation without a key.
func TestInboxIDsAreChecked(t *testing.T) {
	t.Parallel()

	for _, rule := range []string{"", "x-inbox-ids: witihn", "security: []\n      x-inbox-ids: within"} {
		text := "paths:\n  /a:\n    get:\n      operationId: getA\n      security: [{bearerAuth: [read]}]\n      " + rule + "\n"
		if strings.HasPrefix(rule, "security") {
			text = strings.Replace(text, "      security: [{bearerAuth: [read]}]\n", "", 1)
		}
		if out, err := inboxIDsGo(parse(t, text)); err == nil {
			t.Errorf("%q was taken: %s", rule, out)
		}
	}
	out, err := inboxIDsGo(parse(t, "paths: {/a: {get: {operationId: getA, security: [{bearerAuth: [read]}], x-inbox-ids: within}}}"))
	if err != nil || !slices.Contains(strings.Fields(string(out)), "GetAOperation:") {
		t.Errorf("%v: %s", err, out)
	}
}
