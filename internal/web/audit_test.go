//go:build !clients

package web_test

import "strings"

// audit does nothing: with the tag clients, the tests of the browser run again, and
// axe-core audits the pages. make clients finds these tests by their names.
func (b *tab) audit(string, string) {
	b.t.Helper()
	if !strings.HasPrefix(b.t.Name(), "TestBrowser") {
		b.t.Error("the name of a test that opens pages in the browser must begin with TestBrowser")
	}
}
