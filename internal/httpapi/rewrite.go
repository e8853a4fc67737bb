package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ogen-go/ogen/ogenerrors"

	"github.com/postroom/postroom/internal/timeform"
)

// The generated server reads one form of a time and of a whole number. Requests may use
// others: 7.0 for 7, and the times of internal/timeform. So a request that the generated
// server refuses is rewritten and served again, once.

var (
	// timeFields are the fields and parameters of requests that contain times.
	timeFields = map[string]bool{"expires_at": true, "scheduledAt": true, "scheduled_at": true, "since": true}
	// freeFields contain JSON of the client, which is not changed.
	freeFields = map[string]bool{
		"metadata": true, "tags": true, "data": true, "templateData": true, "template_data": true, "variables": true, "headers": true,
	}
)

// maxWhole limits the numbers to those that float64 represents exactly.
const maxWhole = 1 << 53

// rewritten returns the request to serve again after an error of the generated decoder,
// or nil if there is nothing to rewrite.
func (c *Chain) rewritten(r *http.Request, err error) *http.Request {
	info := infoOf(r.Context())
	var query *ogenerrors.DecodeParamsError
	var body *ogenerrors.DecodeRequestError
	again := r.Clone(r.Context())
	switch {
	case info.rewritten:
		return nil
	case errors.As(err, &query):
		q := r.URL.Query()
		since, _ := rewrite(q.Get("since"), "since").(string)
		if since == q.Get("since") || len(q["since"]) > 1 {
			return nil
		}
		q.Set("since", since)
		again.URL.RawQuery = q.Encode()
	case errors.As(err, &body) && r.ContentLength <= smallBody:
		sent, err := io.ReadAll(r.Body) // the decoder has restored it
		if err != nil {
			return nil
		}
		r.Body = io.NopCloser(bytes.NewReader(sent))
		changed := rewriteBody(sent)
		if changed == nil {
			return nil
		}
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(changed)), int64(len(changed))
	default:
		return nil
	}
	info.rewritten = true
	return again
}

// rewriteBody returns nil if nothing changes.
func rewriteBody(body []byte) []byte {
	if len(body) > smallBody || !json.Valid(body) || readBody(body).fault != nil {
		return nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	_ = d.Decode(&v) // it is JSON
	before, _ := json.Marshal(v)
	after, _ := json.Marshal(rewrite(v, ""))
	if bytes.Equal(before, after) {
		return nil
	}
	return after
}

// rewrite rewrites the times and whole numbers below a field.
func rewrite(v any, field string) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			if !freeFields[name] {
				v[name] = rewrite(v[name], name)
			}
		}
	case []any:
		for i := range v {
			v[i] = rewrite(v[i], field)
		}
	case string:
		if t, ok := timeform.Parse(v); ok && timeFields[field] {
			return t.Format(time.RFC3339Nano)
		}
	case json.Number:
		f, err := v.Float64()
		if strings.ContainsAny(v.String(), ".eE") && err == nil && f == math.Trunc(f) && math.Abs(f) <= maxWhole {
			return json.Number(strconv.FormatInt(int64(f), 10))
		}
	}
	return v
}
