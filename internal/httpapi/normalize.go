package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/timeform"
)

// The generated server reads one form of a time and of a whole number. This file
// rewrites the other forms that requests may use: 7.0 for 7, and the times of
// internal/timeform.

var (
	// timeMembers are the request fields and parameters that contain times.
	timeMembers = map[string]bool{"expires_at": true, "scheduledAt": true, "scheduled_at": true, "since": true}
	// freeMembers contain JSON of the client, which stays unchanged.
	freeMembers = map[string]bool{
		"metadata": true, "tags": true, "data": true, "templateData": true, "template_data": true, "variables": true, "headers": true,
	}
)

// maxWhole limits the numbers to those that float64 represents exactly.
const maxWhole = 1 << 53

// NormalizeBody rewrites the times and whole numbers of a JSON body. It returns a
// body that is not JSON unchanged.
func NormalizeBody(body []byte) []byte {
	if !mayNormalize(body) {
		return body
	}
	var (
		out  bytes.Buffer
		done int
		open []member // of the objects and arrays around the token
		at   = member{}
	)
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	for {
		before := int(d.InputOffset())
		token, err := d.Token()
		if err == io.EOF { //nolint:errorlint // Token returns it as it is
			break
		}
		if err != nil {
			return body
		}
		end := int(d.InputOffset())
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				open = append(open, at)
				at = member{name: at.name, free: at.free || freeMembers[at.name], object: v == '{', named: false}
				continue
			}
			at = open[len(open)-1]
			open = open[:len(open)-1]
		case string:
			if at.object && !at.named {
				at.name, at.named = v, true
				continue
			}
			if t, ok := timeform.Parse(v); ok && timeMembers[at.name] && !at.free {
				start := before + bytes.IndexByte(body[before:end], '"')
				out.Write(body[done:start])
				out.WriteString(strconv.Quote(t.Format(time.RFC3339Nano)))
				done = end
			}
		case json.Number:
			if whole, ok := wholeNumber(v.String()); ok && !at.free && !freeMembers[at.name] {
				out.Write(body[done : end-len(v)])
				out.WriteString(whole)
				done = end
			}
		}
		at.named = false
	}
	out.Write(body[done:])
	return out.Bytes()
}

// mayNormalize reports whether a body may need rewriting: it has a time field, or a
// number with a fraction or an exponent follows a colon. Most bodies do not, and
// most of a body is text, so it looks only at quotes and colons.
func mayNormalize(body []byte) bool {
	return hasTimeMember(body) || hasOtherNumber(body)
}

func hasTimeMember(body []byte) bool {
	for {
		_, after, found := bytes.Cut(body, []byte{'"'})
		if !found {
			return false
		}
		for name := range timeMembers {
			if n := len(name); len(after) > n && after[n] == '"' && string(after[:n]) == name {
				return true
			}
		}
		body = after
	}
}

func hasOtherNumber(body []byte) bool {
	isDigit := func(i int) bool { return i < len(body) && '0' <= body[i] && body[i] <= '9' }
	for {
		colon := bytes.IndexByte(body, ':')
		if colon < 0 {
			return false
		}
		body = bytes.TrimPrefix(bytes.TrimLeft(body[colon+1:], " \t\r\n\f"), []byte{'-'})
		n := 0
		for isDigit(n) {
			n++
		}
		if n > 0 && n < len(body) && (body[n] == 'e' || body[n] == 'E' || body[n] == '.' && isDigit(n+1)) {
			return true
		}
	}
}

// member is the position of a token in a JSON document.
type member struct {
	name   string // of the current or enclosing member
	object bool   // the token is directly in an object
	named  bool   // the name has been read; its value follows
	free   bool   // within a free member
}

// wholeNumber converts a whole number such as 7.0 or 1e2 to an integer.
func wholeNumber(s string) (string, bool) {
	if !strings.ContainsAny(s, ".eE") {
		return "", false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxWhole {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

// NormalizeQuery rewrites the times of a query.
func NormalizeQuery(r *http.Request) *http.Request {
	if !strings.Contains(r.URL.RawQuery, "since=") {
		return r
	}
	q := r.URL.Query()
	since := q["since"]
	if len(since) != 1 {
		return r
	}
	t, ok := timeform.Parse(since[0])
	if !ok {
		return r
	}
	q.Set("since", t.Format(time.RFC3339Nano))
	r = r.WithContext(r.Context())
	u := *r.URL
	u.RawQuery = q.Encode()
	r.URL = &u
	return r
}
