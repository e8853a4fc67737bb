package mail

// SafetyLevel says how much care a received message needs.
type SafetyLevel string

// The levels of safety.
const (
	SafetyNone    SafetyLevel = "none"
	SafetyNotice  SafetyLevel = "notice"
	SafetyWarning SafetyLevel = "warning"
)

// AtLeast reports whether the level is as high as another one.
func (l SafetyLevel) AtLeast(least SafetyLevel) bool {
	order := map[SafetyLevel]int{SafetyNotice: 1, SafetyWarning: 2}
	return order[l] >= order[least]
}

// Safety holds what a reader should know before believing a received message. docs/safety.md
// states the rules.
type Safety struct {
	Level SafetyLevel `json:"level"`
	// HiddenText is the beginning of the text that a person does not see, or empty.
	HiddenText string `json:"hidden_text,omitempty"`
	// Invisible are the characters without a visible form and use.
	Invisible InvisibleCharacters `json:"invisible_characters"`
	// TextDiffers means that the plain text says something that the HTML does not show.
	TextDiffers bool `json:"text_differs_from_html,omitempty"`
	// FirstContact means that the account has received nothing from the address before.
	FirstContact bool `json:"first_contact,omitempty"`
	// LookAlike is the domain that the sender resembles, or empty.
	LookAlike      string           `json:"look_alike,omitempty"`
	ReplyToDiffers bool             `json:"reply_to_differs,omitempty"`
	Links          []MisleadingLink `json:"links_lead_elsewhere,omitempty"`
	// Unauthenticated means that neither DMARC nor this installation vouches for the
	// sender.
	Unauthenticated bool `json:"unauthenticated,omitempty"`
	Automated       bool `json:"automated,omitempty"`

	// Hides is the level of the hidden text and the invisible characters.
	Hides SafetyLevel `json:"-"`
}

// InvisibleCharacters are the invisible characters of a message.
type InvisibleCharacters struct {
	Kinds []string `json:"kinds,omitempty"`
	Count int      `json:"count,omitempty"`
}

// MisleadingLink is a link whose text names another site than it leads to.
type MisleadingLink struct {
	Says string `json:"says"` // a host
	URL  string `json:"url"`
}

// Rate sets the level by the other facts.
func (s *Safety) Rate() {
	switch {
	case s.Hides == SafetyWarning, s.LookAlike != "", len(s.Links) > 0 && s.Unauthenticated:
		s.Level = SafetyWarning
	case s.Hides == SafetyNotice, s.TextDiffers, s.ReplyToDiffers, len(s.Links) > 0, s.Unauthenticated:
		s.Level = SafetyNotice
	default:
		s.Level = SafetyNone
	}
}
