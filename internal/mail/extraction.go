package mail

// Extraction holds the codes and links that a message offers to its reader.
type Extraction struct {
	// OTP is the one code that is meant to be typed in, nil when unsure: a
	// wrong code costs more than none.
	OTP *string `json:"otp"`
	// Codes are all candidates, best first.
	Codes []string `json:"codes"`
	// Links are the http and https links of the message, best first, without
	// those that every mail has: to unsubscribe, to set preferences, to view
	// it in a browser, to privacy notices and help pages.
	Links []string `json:"links"`
	// ActionLink is the one link that is meant to be followed, nil when unsure.
	ActionLink *string `json:"action_link"`
}
