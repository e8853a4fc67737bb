package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteJSON writes the report as JSON.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText writes the report as text: one line per result, followed by its
// steps.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, one := range r.Results {
		mark := string(one.Status)
		if one.Status == Fail || one.Status == Warn {
			mark = strings.ToUpper(mark)
		}
		text := one.Saw
		if one.Subject != "" && !strings.Contains(text, one.Subject) {
			text = one.Subject + ": " + text
		}
		fmt.Fprintf(&b, "%-8s %-12s %s\n", mark, one.Check, text)
		for _, step := range one.Do {
			fmt.Fprintf(&b, "%21s -> %s\n", "", step)
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %d warned (WARN), %d failed (FAIL), %d skipped\n", r.Count(OK), r.Count(Warn), r.Count(Fail), r.Count(Skipped))
	_, err := io.WriteString(w, b.String())
	return err
}
