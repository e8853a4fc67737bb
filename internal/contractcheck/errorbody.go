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

// errorBody is the one shape of errors.
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

// hasOwnErrorBody says whether an error answer has a body of its own kind, as
// that of a health check has.
func hasOwnErrorBody(r *openapi3.Response) bool {
	if r == nil {
		return false
	}
	media := r.Content["application/json"]
	return media != nil && media.Schema.Ref != "#/components/schemas/Error"
}

// inside is what only someone who reads our code understands.
var inside = regexp.MustCompile(`decode |callback|unexpected byte|json:|strconv|\bsql|pq:|sqlite|\bgen\.|ogen|\.go\b|goroutine|runtime error|0x[0-9a-f]{6}|\*\w+\.\w+`)

// checkError holds an error that has the documented shape against the rest of
// what errors promise. documented is nil for one that only default covers.
func checkError(documented *openapi3.Response, res *http.Response, answer []byte) error {
	var e errorBody
	if err := json.Unmarshal(answer, &e); err != nil {
		return fmt.Errorf("the error body: %w", err)
	}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: %s", fmt.Sprintf(format, args...), cut(answer)))
	}
	if e.Error.RequestID != res.Header.Get("X-Request-Id") {
		fault("request_id %q is not that of the header", e.Error.RequestID)
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
			fault("the message %q is not for a caller (%q)", text, m)
		}
	}
	return errors.Join(faults...)
}

// notInContract checks the answer to a path or method that the contract does
// not have.
func notInContract(res *http.Response, answer []byte) error {
	var e errorBody
	if err := json.Unmarshal(answer, &e); err != nil || e.Error.Code == "" {
		return fmt.Errorf("not in the contract, and the answer %d is not our error body: %s", res.StatusCode, cut(answer))
	}
	switch {
	case res.StatusCode == http.StatusNotFound:
	case res.StatusCode == http.StatusMethodNotAllowed && e.Error.Code == "method_not_allowed" && res.Header.Get("Allow") != "":
	case res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "":
	case res.StatusCode == http.StatusRequestEntityTooLarge, res.StatusCode == http.StatusUnauthorized:
	default:
		return fmt.Errorf("not in the contract, and answered %d, Allow %q: %s", res.StatusCode, res.Header.Get("Allow"), cut(answer))
	}
	return checkError(nil, res, answer)
}

var timeOut = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// checkTimes finds times, by the names of their fields, that are not in UTC
// with three decimals.
func checkTimes(answer []byte) error {
	var v any
	if err := json.Unmarshal(answer, &v); err != nil {
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
			if name != "metadata" { // the caller's own
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
