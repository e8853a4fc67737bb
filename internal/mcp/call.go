package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
)

const (
	idempotencyHeader = "Idempotency-Key"
	// sameCall is the window in which a repeated send without an idempotency key
	// counts as the same call. Agents repeat calls after they lose the
	// connection.
	sameCall = 10 * time.Second
	// inProgressPause and inProgressTries bound how long a repeated call waits
	// for the result of the first.
	inProgressPause = 100 * time.Millisecond
	inProgressTries = 200
)

// refusal is an error response of the API.
type refusal struct{ code, message string }

func (r *refusal) Error() string { return r.code + ": " + r.message }

func invalid(format string, args ...any) error {
	return &refusal{code: gen.ErrorCodeInvalidRequest, message: fmt.Sprintf(format, args...)}
}

// arguments are the arguments of a call, by parameter or body field.
type arguments map[string]json.RawMessage

// take removes and returns a string argument, "" if it is missing.
func (a arguments) take(name string) (string, error) {
	raw, ok := a[name]
	delete(a, name)
	if !ok {
		return "", nil
	}
	s, given, err := paramText(name, "string", raw)
	if given && s == "" && err == nil {
		err = invalid("%s is empty", name)
	}
	return s, err
}

// request returns the HTTP request of an operation. Arguments that are not
// parameters become the body.
func (op *operation) request(ctx context.Context, args arguments) (*http.Request, error) {
	path, query, body := op.path, url.Values{}, maps.Clone(args)
	for _, p := range op.params {
		kind, _ := p.schema["type"].(string)
		value, given, err := paramText(p.name, kind, args[p.name])
		delete(body, p.name)
		switch {
		case err != nil:
			return nil, err
		case p.in == "path" && value == "":
			return nil, invalid("%s is required", p.name)
		case p.in == "path":
			path = strings.ReplaceAll(path, "{"+p.name+"}", url.PathEscape(value))
		case given:
			query.Set(p.name, value)
		}
	}
	var content io.Reader
	if op.body != nil {
		var doc bytes.Buffer
		enc := json.NewEncoder(&doc)
		enc.SetEscapeHTML(false) // escaping would make HTML longer
		if err := enc.Encode(body); err != nil {
			return nil, err
		}
		content = &doc
	}
	r, err := http.NewRequestWithContext(ctx, op.method, "http://localhost"+path+"?"+query.Encode(), content)
	if err == nil && content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, err
}

// paramText formats an argument as the text of a parameter.
func paramText(name, kind string, raw json.RawMessage) (value string, given bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", false, nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "", false, err
	}
	switch v := v.(type) {
	case string:
		if kind == "string" || kind == "" || kind == "array" { // lists are separated by commas
			return v, true, nil
		}
	case json.Number:
		if kind == "integer" {
			return v.String(), true, nil
		}
	}
	return "", false, invalid("%s must be of the type %s", name, kind)
}

// api calls operations as the caller of the current request.
type api struct{ local http.RoundTripper }

// call performs the operation and returns its response. If once is true and key
// is empty, a repeated call within sameCall is not executed again.
func (a api) call(ctx context.Context, op *operation, args arguments, key string, once bool) (map[string]any, error) {
	if once && key == "" {
		ctx = httpapi.WithSpecial(ctx, func(s *httpapi.Special) { s.OnceWithin = sameCall })
	}
	for tries := 0; ; tries++ {
		response, err := a.try(ctx, op, args, key)
		r, refused := err.(*refusal) //nolint:errorlint // try's own, unwrapped
		if !refused || r.code != gen.ErrorCodeIdempotencyInProgress || key != "" || !once || tries == inProgressTries {
			return response, err
		}
		select {
		case <-time.After(inProgressPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (a api) try(ctx context.Context, op *operation, args arguments, key string) (map[string]any, error) {
	r, err := op.request(ctx, args)
	if err != nil {
		return nil, err
	}
	if key != "" {
		r.Header.Set(idempotencyHeader, key)
	}
	res, err := a.local.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= http.StatusBadRequest {
		return nil, refusalOf(res)
	}
	var response map[string]any
	d := json.NewDecoder(res.Body)
	d.UseNumber()
	if err := d.Decode(&response); err != nil {
		return nil, fmt.Errorf("read the response of %s: %w", op.name, err)
	}
	return response, nil
}

// refusalOf parses an error response.
func refusalOf(res *http.Response) error {
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil || e.Error.Code == "" {
		return fmt.Errorf("response %d: %w", res.StatusCode, err)
	}
	if after := res.Header.Get("Retry-After"); after != "" {
		e.Error.Message += " (try again in " + after + " s)"
	}
	return &refusal{e.Error.Code, e.Error.Message}
}
