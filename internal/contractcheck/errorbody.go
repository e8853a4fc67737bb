package contractcheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// errorBody is the common shape of errors.
type errorBody struct {
	Error struct {
		Code      string `json:"code"`
		Message   string `json:"message"`
		RequestID string `json:"request_id"`
		Details   []struct {
			Message string `json:"message"`
		} `json:"details"`
	} `json:"error"`
}

// hasOwnErrorBody reports whether an error response has its own kind of body, like that of
// a health check.
func hasOwnErrorBody(r *openapi3.Response) bool {
	if r == nil {
		return false
	}
	media := r.Content["application/json"]
	return media != nil && media.Schema.Ref != "#/components/schemas/Error"
}

// inside matches internal details that mean nothing to a caller.
var inside = regexp.MustCompile(`decode |callback|unexpected byte|json:|strconv|\bsql|pq:|sqlite|\bgen\.|ogen|\.go\b|goroutine|runtime error|0x[0-9a-f]{6}|\*\w+\.\w+`)

// checkError checks an error of the documented shape against the other promises about
// errors. documented is nil if only default covers the status.
func checkError(documented *openapi3.Response, res *http.Response, responseBody []byte) error {
	var e errorBody
	if err := json.Unmarshal(responseBody, &e); err != nil {
		return fmt.Errorf("the error body: %w", err)
	}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: %s", fmt.Sprintf(format, args...), cut(responseBody)))
	}
	if e.Error.RequestID != res.Header.Get("X-Request-Id") {
		fault("request_id %q differs from the header", e.Error.RequestID)
	}
	if documented != nil && !strings.Contains(*documented.Description, "`"+e.Error.Code+"`") {
		fault("code %q is not documented for %d", e.Error.Code, res.StatusCode)
	}
	texts := []string{e.Error.Message}
	for _, d := range e.Error.Details {
		texts = append(texts, d.Message)
	}
	for _, text := range texts {
		if m := inside.FindString(text); m != "" || text == "" {
			fault("the message %q contains internal details (%q)", text, m)
		}
	}
	return errors.Join(faults...)
}

// notInContract checks the response to a path or method that the contract does not contain.
func notInContract(res *http.Response, responseBody []byte) error {
	var e errorBody
	if err := json.Unmarshal(responseBody, &e); err != nil || e.Error.Code == "" {
		return fmt.Errorf("not in the contract, and the response %d is not the common error body: %s", res.StatusCode, cut(responseBody))
	}
	switch {
	case res.StatusCode == http.StatusNotFound:
	case res.StatusCode == http.StatusMethodNotAllowed && e.Error.Code == "method_not_allowed" && res.Header.Get("Allow") != "":
	case res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "":
	case res.StatusCode == http.StatusRequestEntityTooLarge, res.StatusCode == http.StatusUnauthorized:
	default:
		return fmt.Errorf("not in the contract, and got %d, Allow %q: %s", res.StatusCode, res.Header.Get("Allow"), cut(responseBody))
	}
	return checkError(nil, res, responseBody)
}

var timeOut = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// checkTimes finds times, by their field names, that are not in UTC with three decimals.
func checkTimes(responseBody []byte) error {
	var v any
	if err := json.Unmarshal(responseBody, &v); err != nil {
		return fmt.Errorf("the body: %w", err)
	}
	return timesIn(v, "")
}

func timesIn(v any, path string) error {
	var faults []error
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			place := path + "." + name
			s, isText := field.(string)
			if isText && (strings.HasSuffix(name, "_at") || name == "since") && !timeOut.MatchString(s) {
				faults = append(faults, fmt.Errorf("%s: %q is not a time with three decimals in UTC", place, s))
			}
			if name != "metadata" { // chosen by the caller
				faults = append(faults, timesIn(field, place))
			}
		}
	case []any:
		for _, item := range v {
			faults = append(faults, timesIn(item, path+"[]"))
		}
	}
	return errors.Join(faults...)
}
