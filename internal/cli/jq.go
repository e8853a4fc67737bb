package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/itchyny/gojq"
)

// query is a compiled jq expression for the JSON of a response.
type query struct{ code *gojq.Code }

func newQuery(text string) (*query, error) {
	parsed, err := gojq.Parse(text)
	if err == nil {
		var code *gojq.Code
		if code, err = gojq.Compile(parsed); err == nil {
			return &query{code}, nil
		}
	}
	return nil, UsageError{fmt.Errorf("--%s: %w", jqFlag, err)}
}

// write writes the results for a document, one on each line: texts without quotes, and
// everything else as JSON.
func (q *query) write(o output, doc []byte) error {
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		return err
	}
	results := q.code.Run(v)
	for {
		v, more := results.Next()
		if !more {
			return nil
		}
		if err, failed := v.(error); failed {
			if halt, is := errors.AsType[*gojq.HaltError](err); is && halt.Value() == nil {
				return nil
			}
			return fmt.Errorf("--%s: %w", jqFlag, err)
		}
		line, isText := v.(string)
		if isText {
			line = cleanText(line) + "\n"
		} else {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(v); err != nil {
				return err
			}
			line = harmlessJSON(b.String())
		}
		if _, err := io.WriteString(o.w, line); err != nil {
			return err
		}
	}
}
