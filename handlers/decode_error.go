package handlers

import (
	"errors"
	"fmt"
	"net/http"
	"os"
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
		body     *ogenerrors.DecodeBodyError
		request  *ogenerrors.DecodeRequestError
		fields   *validate.Error
	)
	switch {
	case errors.As(err, &tooLarge):
		return errTooLarge(tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errTooSlow
	case errors.As(err, &media):
		return errMediaType
	case errors.As(err, &param):
		return paramError(param)
	case errors.Is(err, validate.ErrBodyRequired):
		return errBodyRequired
	case errors.As(err, &body):
		return bodyError(body)
	case errors.As(err, &request) && errors.As(err, &fields):
		return invalidFields(fieldDetails("", fields))
	case errors.As(err, &request) && strings.Contains(request.Err.Error(), "parse media type"):
		return errMediaType
	case errors.As(err, &request):
		return invalid("", "the body cannot be read")
	}
	return nil
}

var errMediaType = &apiError{
	status: http.StatusUnsupportedMediaType, code: gen.ErrorCodeUnsupportedMediaType, message: "Content-Type must be application/json",
}

var errEncoding = &apiError{
	status: http.StatusUnsupportedMediaType, code: gen.ErrorCodeUnsupportedMediaType, message: "bodies must not be packed: leave Content-Encoding out",
}

var errTooSlow = &apiError{
	status: http.StatusRequestTimeout, code: gen.ErrorCodeRequestTimeout, message: "the body took too long to arrive",
}

var errBodyRequired = invalid("", "a body is required")

func errTooLarge(limit int64) *apiError {
	return &apiError{
		status: http.StatusRequestEntityTooLarge, code: gen.ErrorCodePayloadTooLarge,
		message: fmt.Sprintf("the body may be at most %d bytes", limit),
	}
}

// invalid is 400 for what is wrong at param, or as a whole.
func invalid(param, what string) *apiError {
	message := what
	if param != "" {
		message = param + " " + what
	}
	return &apiError{status: http.StatusBadRequest, code: gen.ErrorCodeInvalidRequest, param: param, message: message}
}

// paramError is for a parameter. One in the path that breaks a rule names
// nothing that exists.
func paramError(err *ogenerrors.DecodeParamError) *apiError {
	if err.In == openapi.LocationPath {
		return errNotFound
	}
	if fields, ok := errors.AsType[*validate.Error](err.Err); ok {
		return invalidFields(fieldDetails(err.Name, fields))
	}
	return invalid(err.Name, reasonAt(err.Name, err.Err.Error()))
}

// bodyError is for a body that does not parse, or not into what is wanted.
func bodyError(err *ogenerrors.DecodeBodyError) *apiError {
	doc, syntax := parseBody(err.Body)
	if syntax != "" {
		return &apiError{status: http.StatusBadRequest, code: gen.ErrorCodeInvalidJson, message: "the body is not valid JSON: " + syntax}
	}
	if _, isObject := doc.(map[string]any); !isObject {
		return invalid("", "the body must be a JSON object")
	}
	text := err.Err.Error()
	at := spotOf(text)
	if fields, ok := errors.AsType[*validate.Error](err.Err); ok {
		return invalidFields(fieldDetails(at.locate(doc, lacks(fields)), fields))
	}
	if name, unknown := unexpectedField(text); unknown {
		place := at.locate(doc, has(name))
		if !fixedFields(text) {
			return invalid(cut(joinPath(place, name)), "is not an allowed name")
		}
		return invalid(cut(joinPath(place, name)), "is not a field of this request")
	}
	place := cut(at.locate(doc, faultOf(text)))
	return invalid(place, reasonAt(place, text))
}

// invalidFields is 400 for the faults that validation found.
func invalidFields(details []gen.ErrorDetail) *apiError {
	e := invalid(details[0].Param, details[0].Message)
	if len(details) > 1 {
		e.details = details
	}
	return e
}

// maxDetails bounds how many faults of one request are listed.
const maxDetails = 20

// fieldDetails lists the faults of a validation, each at its path.
func fieldDetails(prefix string, err *validate.Error) []gen.ErrorDetail {
	var out []gen.ErrorDetail
	for _, f := range err.Fields {
		path := joinPath(prefix, f.Name)
		if nested, ok := errors.AsType[*validate.Error](f.Error); ok {
			out = append(out, fieldDetails(path, nested)...)
		} else {
			out = append(out, gen.ErrorDetail{Param: cut(path), Message: reasonAt(path, f.Error.Error())})
		}
		if len(out) >= maxDetails {
			return out[:maxDetails]
		}
	}
	return out
}

// joinPath adds a name, or an index such as [3], to a path.
func joinPath(prefix, name string) string {
	if prefix == "" || name == "" || strings.HasPrefix(name, "[") {
		return prefix + name
	}
	return prefix + "." + name
}
