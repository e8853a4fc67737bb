package handlers

import "regexp"

// reasons says in our words what the messages of the generated code mean. The
// first that matches counts.
var reasons = []struct {
	match *regexp.Regexp
	say   string
}{
	{regexp.MustCompile(`field required$`), "is required"},
	{regexp.MustCompile(`string: len 0 less than minimum \d+$`), "may not be empty"},
	{regexp.MustCompile(`string: len (\d+) less than minimum (\d+)$`), "must have at least $2 characters and has $1"},
	{regexp.MustCompile(`string: len (\d+) greater than maximum (\d+)$`), "may have at most $2 characters and has $1"},
	{regexp.MustCompile(`len 0 less than minimum \d+$`), "may not be empty"},
	{regexp.MustCompile(`len (\d+) less than minimum (\d+)$`), "must have at least $2 items and has $1"},
	{regexp.MustCompile(`len (\d+) greater than maximum (\d+)$`), "may have at most $2 items and has $1"},
	{regexp.MustCompile(`properties number (\d+) greater than maximum (\d+)$`), "may have at most $2 fields and has $1"},
	{regexp.MustCompile(`properties number (\d+) less than minimum (\d+)$`), "must have at least $2 fields and has $1"},
	{regexp.MustCompile(`duplicate element \[\d+\] [^\n]*$`), "holds the same item twice"},
	{regexp.MustCompile(`value (\S+) less than (\S+)$`), "must be at least $2"},
	{regexp.MustCompile(`value (\S+) greater than (\S+)$`), "may be at most $2"},
	{regexp.MustCompile(`no regex match: \^\[\^\\x00-\\x1F`), "may not hold line breaks or other control characters"},
	{regexp.MustCompile(`no regex match: ([^\n]+)$`), "must match $1"},
	{regexp.MustCompile(`(?s)invalid value: .*$`), undocumented},
	{regexp.MustCompile(`string: (?:no @|got @ .*|@ at .*|blank|space character .*|not printable character .*)$`), "is not an email address"},
	{regexp.MustCompile(`"\{" expected: unexpected byte`), "must be an object"},
	{regexp.MustCompile(`"\[" expected: unexpected byte`), "must be an array"},
	{regexp.MustCompile(`floating point character`), "must be a whole number"},
	{regexp.MustCompile(`value out of range$`), "is out of range"},
	{regexp.MustCompile(`(?s)parsing time .*$`), "is not a time with a date and an offset, such as 2027-01-31T10:00:00Z"},
	{regexp.MustCompile(`(?s)strconv\.\w+: parsing .*$`), "is not a number"},
	{regexp.MustCompile(`illegal base64 data`), "is not base64 with padding"},
	{regexp.MustCompile(`multiple values$`), "may be given only once"},
}

// reason is what a message of the generated code means to a caller.
func reason(text string) string {
	for _, r := range reasons {
		if m := r.match.FindStringSubmatchIndex(text); m != nil {
			return cut(string(r.match.ExpandString(nil, r.say, text, m)))
		}
	}
	if t := unexpectedValue(text); t != "" {
		return "may not be " + called[t]
	}
	return "is not valid"
}

// called is what a JSON type is called.
var called = map[string]string{
	"string": "a string", "object": "an object", "array": "an array", "bool": "a boolean", "null": "null", "number": "a number",
}
