package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ogen-go/ogen/ogenerrors"
	"github.com/ogen-go/ogen/openapi"
	"github.com/ogen-go/ogen/validate"

	"github.com/postroom/postroom/gen"
)

// decodeError explains an error of the generated decoder to the client. It
// returns nil for other errors.
func decodeError(r *http.Request, err error) *Error {
	var (
		media   *validate.InvalidContentTypeError
		param   *ogenerrors.DecodeParamError
		params  *ogenerrors.DecodeParamsError
		request *ogenerrors.DecodeRequestError
	)
	switch {
	case errors.As(err, &media):
		return errMediaType(r)
	case errors.As(err, &params) && errors.As(err, &param):
		return paramError(r, params.ID, param)
	case errors.Is(err, validate.ErrBodyRequired):
		return errBodyRequired
	case errors.As(err, &request) && strings.Contains(request.Err.Error(), "parse media type"):
		return errMediaType(r)
	case errors.As(err, &request):
		return bodyError(r, request.ID)
	}
	return nil
}

func errMediaType(r *http.Request) *Error {
	if r.ContentLength == 0 {
		return errBodyRequired // a missing body has no type
	}
	message := "Content-Type must be application/json"
	if sent := r.Header.Get("Content-Type"); sent != "" {
		message += ", not " + strconv.Quote(sent)
	}
	return &Error{Status: http.StatusUnsupportedMediaType, Code: gen.ErrorCodeUnsupportedMediaType, Message: message}
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
func paramError(r *http.Request, operation string, err *ogenerrors.DecodeParamError) *Error {
	values := r.Header.Values(err.Name)
	switch err.In {
	case openapi.LocationPath:
		return ErrNotFound
	case openapi.LocationQuery:
		values = r.URL.Query()[err.Name]
	}
	return invalid(ExplainParam(operation, string(err.In), err.Name, values))
}

// bodyError explains what is wrong with a body.
func bodyError(r *http.Request, operation string) *Error {
	body, err := io.ReadAll(r.Body) // the decoder has restored the body
	if err != nil {
		return Invalid("", "the body cannot be read")
	}
	if fault := notJSON(body); fault != "" {
		e := Invalid("", "the body is not valid JSON: %s", fault)
		e.Code = gen.ErrorCodeInvalidJson
		return e
	}
	return invalid(ExplainBody(operation, body))
}

// invalid returns faults as an error. Its message is that of the first.
func invalid(faults []Fault) *Error {
	e := Invalid(cut(faults[0].Param), "%s", faults[0].Message)
	if len(faults) > 1 {
		for _, f := range faults {
			e.Details = append(e.Details, gen.ErrorDetail{Param: cut(f.Param), Message: cut(f.Message)})
		}
	}
	return e
}

// notJSON returns why body is not JSON and where, or "" if it is.
func notJSON(body []byte) string {
	var whole json.RawMessage
	err := json.Unmarshal(body, &whole)
	fault, ok := errors.AsType[*json.SyntaxError](err)
	if err == nil || !ok {
		return ""
	}
	if int(fault.Offset) >= len(body) && strings.HasPrefix(fault.Error(), "unexpected end") {
		return "it ends too early"
	}
	before := body[:max(0, min(int(fault.Offset)-1, len(body)))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	say := fmt.Sprintf("%s at line %d, column %d", fault, bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(line)+1)
	if bytes.HasSuffix(bytes.TrimRight(before, " \t\r\n"), []byte(",")) {
		say += ", after a comma too many"
	}
	return say
}
