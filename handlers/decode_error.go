package handlers

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/ogen-go/ogen/ogenerrors"
	"github.com/ogen-go/ogen/openapi"
	"github.com/ogen-go/ogen/validate"

	"github.com/postroom/postroom/gen"
)

// decodeError turns an error of the generated decoder into one for the caller,
// with the place of the fault, or returns nil when it is none.
func decodeError(err error) *apiError {
	var (
		tooLarge *http.MaxBytesError
		media    *validate.InvalidContentTypeError
		param    *ogenerrors.DecodeParamError
		params   *ogenerrors.DecodeParamsError
		body     *ogenerrors.DecodeRequestError
	)
	switch {
	case errors.As(err, &tooLarge):
		return errTooLarge(tooLarge.Limit)
	case errors.As(err, &media):
		return errMediaType
	case errors.As(err, &param):
		if param.In == openapi.LocationPath {
			return &apiError{status: http.StatusNotFound, code: gen.ErrorCodeNotFound, message: "not found"}
		}
		return invalidAt(param.Name, err)
	case errors.As(err, &params):
		return invalidAt("", err)
	case errors.As(err, &body):
		if strings.Contains(body.Err.Error(), "mime: no media type") {
			return errMediaType
		}
		return invalidAt("", body.Err)
	}
	return nil
}

var errMediaType = &apiError{
	status: http.StatusUnsupportedMediaType, code: gen.ErrorCodeUnsupportedMediaType, message: "Content-Type must be application/json",
}

func errTooLarge(limit int64) *apiError {
	return &apiError{
		status: http.StatusRequestEntityTooLarge, code: gen.ErrorCodePayloadTooLarge,
		message: fmt.Sprintf("the body may be at most %d bytes", limit),
	}
}

// invalidAt is 400 for a fault below param: with every field that validation
// names, else with the place that the decoder was at.
func invalidAt(param string, err error) *apiError {
	e := &apiError{status: http.StatusBadRequest, code: gen.ErrorCodeInvalidRequest, param: param}
	var fields *validate.Error
	if errors.As(err, &fields) {
		e.details = fieldDetails(param, fields)
	}
	if len(e.details) > 0 {
		e.param, e.message = e.details[0].Param, e.details[0].Param+" "+e.details[0].Message
		if len(e.details) == 1 {
			e.details = nil
		}
		return e
	}
	if param != "" {
		e.message = param + " " + reason(err)
		return e
	}
	place, why := decodePlace(err.Error())
	if place == "" {
		e.code, e.message = gen.ErrorCodeInvalidJson, "the body is not the JSON object expected: "+why
		return e
	}
	e.param, e.message = place, place+" "+why
	return e
}

// fieldDetails lists the faults of a validation, each at its path.
func fieldDetails(prefix string, err *validate.Error) []gen.ErrorDetail {
	var out []gen.ErrorDetail
	for _, f := range err.Fields {
		path := joinPath(prefix, f.Name)
		var nested *validate.Error
		if errors.As(f.Error, &nested) {
			out = append(out, fieldDetails(path, nested)...)
			continue
		}
		out = append(out, gen.ErrorDetail{Param: path, Message: cut(reason(f.Error))})
	}
	return out
}

// joinPath adds a name, or an index such as [3], to a path.
func joinPath(prefix, name string) string {
	if prefix == "" || strings.HasPrefix(name, "[") {
		return prefix + name
	}
	return prefix + "." + name
}

// reasons says in our words what the validator's messages mean.
var reasons = []struct {
	match *regexp.Regexp
	say   string
}{
	{regexp.MustCompile(`len (\d+) less than minimum (\d+)`), "must have at least $2, has $1"},
	{regexp.MustCompile(`len (\d+) greater than maximum (\d+)`), "must have at most $2, has $1"},
	{regexp.MustCompile(`value (\S+) less than (\S+)`), "must be at least $2"},
	{regexp.MustCompile(`value (\S+) greater than (\S+)`), "must be at most $2"},
	{regexp.MustCompile(`no regex match.*|does not match.*`), "has a character or form that is not allowed"},
	{regexp.MustCompile(`field required`), "is required"},
	{regexp.MustCompile(`invalid value: (.{0,100}).*`), "must be one of the documented values"},
	{regexp.MustCompile(`no @|mail: .*|blank|invalid email.*`), "is not an email address"},
	{regexp.MustCompile(`unable to detect sum type variant.*|unexpected json type.*`), "has the wrong type"},
	{regexp.MustCompile(`object properties number.*|.*number of properties.*`), "has too few or too many properties"},
	{regexp.MustCompile(`parsing time.*`), "is not an RFC 3339 time"},
	{regexp.MustCompile(`strconv\.\w+: parsing.*|invalid syntax.*`), "is not a number"},
	{regexp.MustCompile(`unexpected byte.*|unexpected char.*|unexpected .* at \d+.*`), "has the wrong type"},
	{regexp.MustCompile(`illegal base64.*|base64.*`), "is not base64"},
}

// reason is the end of the chain of an error, in our words.
func reason(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	s := err.Error()
	for _, r := range reasons {
		if m := r.match.FindStringSubmatchIndex(s); m != nil {
			return string(r.match.ExpandString(nil, r.say, s, m))
		}
	}
	return "is not valid"
}

var (
	decodedField = regexp.MustCompile(`decode field "((?:[^"\\]|\\.)*)"|unexpected field "((?:[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)" duplicated`)
	badSyntax    = regexp.MustCompile(`EOF|unexpected byte|unexpected trailing|depth`)
)

// decodePlace reads the path of the fault out of a decoder's message, which is
// a chain of the fields that it was in.
func decodePlace(msg string) (place, why string) {
	why = "has the wrong type"
	if strings.Contains(msg, "unexpected field") {
		why = "is not a field of this request"
	}
	for _, m := range decodedField.FindAllStringSubmatch(msg, -1) {
		place = joinPath(place, m[1]+m[2]+m[3])
	}
	if place == "" {
		why = "it does not parse"
		if !badSyntax.MatchString(msg) {
			why = "it has the wrong type"
		}
	}
	return cut(place), why
}
