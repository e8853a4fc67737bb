package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ogen-go/ogen/ogenerrors"
	"github.com/ogen-go/ogen/openapi"
	"github.com/ogen-go/ogen/validate"

	"github.com/postroom/postroom/gen"
)

// decodeError explains an error of the generated decoder to the client. It
// returns nil for other errors.
func (c *Chain) decodeError(r *http.Request, err error) *Error {
	var (
		media   *validate.InvalidContentTypeError
		param   *ogenerrors.DecodeParamError
		params  *ogenerrors.DecodeParamsError
		request *ogenerrors.DecodeRequestError
	)
	switch {
	case errors.As(err, &media):
		return errMediaType
	case errors.As(err, &params) && errors.As(err, &param):
		return c.paramError(r, params.ID, param)
	case errors.Is(err, validate.ErrBodyRequired):
		return errBodyRequired
	case errors.As(err, &request) && strings.Contains(request.Err.Error(), "parse media type"):
		return errMediaType
	case errors.As(err, &request):
		return c.bodyError(r, request)
	}
	return nil
}

var errMediaType = &Error{
	Status: http.StatusUnsupportedMediaType, Code: gen.ErrorCodeUnsupportedMediaType, Message: "Content-Type must be application/json",
}

var errEncoding = &Error{
	Status: http.StatusUnsupportedMediaType, Code: gen.ErrorCodeUnsupportedMediaType, Message: "send the body without compression and without a Content-Encoding header",
}

var errTooSlow = &Error{
	Status: http.StatusRequestTimeout, Code: gen.ErrorCodeRequestTimeout, Message: "the body took too long to arrive",
}

var errBodyRequired = Invalid("", "a body is required")

func errTooLarge(limit int64) *Error {
	return &Error{
		Status: http.StatusRequestEntityTooLarge, Code: gen.ErrorCodePayloadTooLarge,
		Message: fmt.Sprintf("the body must have at most %d bytes", limit),
	}
}

// paramError explains what is wrong with a parameter. An invalid id in the path
// cannot exist, so the response is 404.
func (c *Chain) paramError(r *http.Request, operationID string, err *ogenerrors.DecodeParamError) *Error {
	var values []string
	switch err.In {
	case openapi.LocationPath:
		return ErrNotFound
	case openapi.LocationQuery:
		values = r.URL.Query()[err.Name]
	case openapi.LocationHeader:
		values = r.Header.Values(err.Name)
	}
	faults, failed := c.requests.Param(operationID, string(err.In), err.Name, values)
	return c.explained(r, err.Name, faults, failed)
}

// bodyError explains what is wrong with a body.
func (c *Chain) bodyError(r *http.Request, err *ogenerrors.DecodeRequestError) *Error {
	body, failed := io.ReadAll(r.Body) // the decoder has restored the body
	if failed != nil {
		return Invalid("", "the body cannot be read")
	}
	if fault := notJSON(body); fault != "" {
		return &Error{Status: http.StatusBadRequest, Code: gen.ErrorCodeInvalidJson, Message: "the body is not valid JSON: " + fault}
	}
	if bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
		return Invalid("", "the body must be a JSON object")
	}
	faults, failed := c.requests.Body(err.ID, body)
	return c.explained(r, "", faults, failed)
}

// explained returns the faults as an error. It never returns nil, since the
// decoder refused the request.
func (c *Chain) explained(r *http.Request, param string, faults []Fault, failed error) *Error {
	if failed != nil {
		c.log.WarnContext(r.Context(), "explain an invalid request", "error", failed, "request_id", RequestID(r.Context()))
	}
	if len(faults) == 0 && param == "" {
		return Invalid("", "the body does not match the API description")
	}
	if len(faults) == 0 {
		return Invalid(param, "is not valid")
	}
	e := Invalid(cut(faults[0].Param), "%s", faults[0].Message)
	if len(faults) > 1 {
		for _, f := range faults {
			e.Details = append(e.Details, gen.ErrorDetail{Param: cut(f.Param), Message: cut(f.Message)})
		}
	}
	return e
}

// notJSON returns why body is not JSON, or "" if it is.
func notJSON(body []byte) string {
	d := json.NewDecoder(bytes.NewReader(body))
	var whole json.RawMessage
	err := d.Decode(&whole)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return ""
		}
		return "unexpected data after the JSON value"
	}
	if fault, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("syntax error at byte %d", fault.Offset)
	}
	return "it ends too early"
}
