package web

import (
	"fmt"
	"regexp"
	"strconv"
)

// items are the names that pages use for the list entries of a request.
var items = map[string]string{
	"to": "recipient", "cc": "Cc recipient", "bcc": "Bcc recipient", "allowed_ips": "address",
	"inbox_ids": "inbox", "scopes": "scope", "events": "event",
}

// itemPlace matches the list entry at the start of an API error.
var itemPlace = regexp.MustCompile(`^([a-z_]+)\[(\d{1,3})\](?:\.email)? `)

// plainFault rewrites an API error for users who do not see the request: "The 2nd
// recipient" for "to[1]".
func plainFault(text string) string {
	m := itemPlace.FindStringSubmatch(text)
	if m == nil || items[m[1]] == "" {
		return text
	}
	n, err := strconv.Atoi(m[2])
	if err != nil {
		return text
	}
	return fmt.Sprintf("The %s %s %s", ordinal(n+1), items[m[1]], text[len(m[0]):])
}

// ordinal returns "1st" for 1.
func ordinal(n int) string {
	end := "th"
	if n%100/10 != 1 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.Itoa(n) + end
}
