package mail

// Extraction holds the codes, the links and the invitation found in a message.
type Extraction struct {
	// OTP is the one-time code, or nil if uncertain: a wrong code is worse than
	// none.
	OTP *string `json:"otp"`
	// Codes are all candidates, best first.
	Codes []string `json:"codes"`
	// Links are the http and https links of the message, best first. It leaves
	// out usual footer links: unsubscribe, preferences, view in browser,
	// privacy notices and help pages.
	Links []string `json:"links"`
	// ActionLink is the link that the reader is meant to follow, or nil if
	// uncertain.
	ActionLink *string `json:"action_link"`
	// Calendar is the event of an invitation, or nil.
	Calendar *Calendar `json:"calendar,omitempty"`
}
