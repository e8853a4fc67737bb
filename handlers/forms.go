package handlers

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/timeform"
)

// The generated server reads one form of a time and of a whole number. Requests
// may use others with the same meaning, which are rewritten here before it reads
// them: 7.0 for 7, and the times of internal/timeform.

var (
	// timeMembers are the fields and parameters of requests that are times.
	timeMembers = map[string]bool{"expires_at": true, "scheduledAt": true, "since": true}
	// freeMembers hold JSON of the caller, which is kept as it is written.
	freeMembers = map[string]bool{
		"metadata": true, "tags": true, "data": true, "templateData": true, "variables": true, "headers": true,
	}
	// otherForm finds what may need rewriting. Most bodies hold none.
	otherForm = regexp.MustCompile(`:\s*-?[0-9]+(?:\.[0-9]|[eE])|"(?:expires_at|scheduledAt|since)"`)
)

// maxWhole bounds the numbers that float64 holds exactly.
const maxWhole = 1 << 53

// oneForm rewrites the times and whole numbers of a JSON body. A body that is not
// JSON is returned unchanged.
func oneForm(body []byte) []byte {
	if !otherForm.Match(body) {
		return body
	}
	var (
		out   bytes.Buffer
		done  int
		open  []member // of the objects and arrays around the token
		place = member{}
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
				open = append(open, place)
				place = member{name: place.name, free: place.free || freeMembers[place.name], object: v == '{', named: false}
				continue
			}
			place = open[len(open)-1]
			open = open[:len(open)-1]
		case string:
			if place.object && !place.named {
				place.name, place.named = v, true
				continue
			}
			if t, ok := timeform.Parse(v); ok && timeMembers[place.name] && !place.free {
				start := before + bytes.IndexByte(body[before:end], '"')
				out.Write(body[done:start])
				out.WriteString(strconv.Quote(t.Format(time.RFC3339Nano)))
				done = end
			}
		case json.Number:
			if whole, ok := wholeNumber(v.String()); ok && !place.free && !freeMembers[place.name] {
				out.Write(body[done : end-len(v)])
				out.WriteString(whole)
				done = end
			}
		}
		place.named = false
	}
	out.Write(body[done:])
	return out.Bytes()
}

// member is the place of a token in a JSON document.
type member struct {
	name   string // of the member that the token is or stands in
	object bool   // the token stands in an object, else in an array or alone
	named  bool   // the name has been read, its value follows
	free   bool   // within a free member
}

// wholeNumber writes a number such as 7.0 or 1e2 as an integer, if it is one.
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

// oneQueryForm rewrites the times of a query.
func oneQueryForm(r *http.Request) *http.Request {
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
