//go:build clients

package web_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"

	"github.com/chromedp/chromedp"
)

// axe returns the source of axe-core, which audits pages for accessibility.
var axe = sync.OnceValues(func() ([]byte, error) { return os.ReadFile("testdata/axe/node_modules/axe-core/axe.min.js") })

// audit runs axe-core on the page: the named rule, or all if it is empty. The
// devtools protocol runs the script, so that the policy of the page does not matter.
// Frames are left out: they show messages of other people.
func (b *tab) audit(as, rule string) {
	b.t.Helper()
	b.t.Run("axe", func(t *testing.T) {
		source, err := axe()
		if errors.Is(err, os.ErrNotExist) {
			skiptest.OutsideCI(t, "axe-core is not installed: run make clients")
		}
		must(t, err)
		only := ""
		if rule != "" {
			only = fmt.Sprintf("runOnly: [%q],", rule)
		}
		found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](fmt.Sprintf(`(async () => {
  if (!window.axe) { %s }
  const got = await axe.run({%s iframes: false, resultTypes: ['violations']});
  return got.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html + '\n' + n.failureSummary).join('\n'));
})()`, source, only), chromedp.EvalAwaitPromise))
		must(t, err)
		for _, f := range found {
			t.Errorf("%s, %s: %s", b.where(), as, f)
		}
	})
}
