package handlers_test

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"
)

// A whole number may have a fraction of zero, as in JSON Schema.
func TestWholeNumbersMayHaveAFraction(t *testing.T) {
	s := serve(t)
	for _, n := range []string{"7.0", "7.000", "7e0", "70e-1", "0.7E+1"} {
		in := s.do(t, http.MethodPost, "/v1/inboxes", `{"retention_days":`+n+`,"metadata":{"n":7.0,"retention_days":1.0}}`)
		in.want(t, http.StatusCreated).wantAt(t, "retention_days", "7")
		in.wantExactly(t, "metadata", `{"n":7.0,"retention_days":1.0}`)
	}
	for _, body := range []string{`{"retention_days":7.0} x`, `{"retention_days":7.0,"name":"a","name":"b"}`, `{"retention_days":7.0,}`} {
		s.do(t, http.MethodPost, "/v1/inboxes", body, broken).want(t, http.StatusBadRequest)
	}
	for _, n := range []string{"7.5", `"7.0"`, "7.0.0", "31.0", "0.0"} {
		s.do(t, http.MethodPost, "/v1/inboxes", `{"retention_days":`+n+`}`, broken).want(t, http.StatusBadRequest)
	}
}

// Times in requests may have any common ISO 8601 form.
func TestTimesOfRequests(t *testing.T) {
	s := serve(t)
	for in, want := range map[string]string{
		"2030-01-31T10:00:00+0000": "2030-01-31T10:00:00.000Z", "2030-01-31T10:00Z": "2030-01-31T10:00:00.000Z",
		"2030-01-31 12:00+02": "2030-01-31T10:00:00.000Z", "2030-01-31T10:00:00.123456789Z": "2030-01-31T10:00:00.123Z",
	} {
		made := s.do(t, http.MethodPost, "/v1/inboxes", `{"metadata":{"since":"2030-01-31T10:00Z"},"expires_at":"`+in+`"}`).want(t, http.StatusCreated)
		made.wantAt(t, "expires_at", `"`+want+`"`)
		made.wantAt(t, "metadata.since", `"2030-01-31T10:00Z"`)
		s.do(t, http.MethodGet, "/v1/messages?since="+url.QueryEscape(in), "").want(t, http.StatusOK)
	}
	for _, in := range []string{"2030-01-31", "2030-01-31T10:00:00", "2030-02-31T10:00Z", "tomorrow"} {
		message := " is not a time with a date and an offset, like 2027-01-31T10:00:00Z: " + strconv.Quote(in)
		res := s.do(t, http.MethodPost, "/v1/inboxes", `{"expires_at":"`+in+`"}`, broken).wantError(t, http.StatusBadRequest, "invalid_request expires_at")
		if got := res.str(t, "error.message"); got != "expires_at"+message {
			t.Errorf("%s: %s", in, got)
		}
		res = s.do(t, http.MethodGet, "/v1/messages?since="+url.QueryEscape(in), "", broken).wantError(t, http.StatusBadRequest, "invalid_request since")
		if got := res.str(t, "error.message"); got != "since"+message {
			t.Errorf("%s: %s", in, got)
		}
	}
}
