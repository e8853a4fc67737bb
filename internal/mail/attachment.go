package mail

// Attachment describes a leaf part other than the text of its message. The
// content stays in the raw message.
type Attachment struct {
	// ID is the public id, set when the message is stored.
	ID string `json:"id,omitempty"`
	// Part is the number of the leaf part, in the order of the message.
	Part int `json:"part"`
	// Filename is a base name without control characters. It may be empty.
	Filename    string `json:"filename"`
	ContentType string `json:"content_type"`         // media type in lower case, without parameters
	ContentID   string `json:"content_id,omitempty"` // without angle brackets
	Inline      bool   `json:"inline,omitempty"`     // shown within the HTML rather than listed
	Size        int64  `json:"size"`                 // decoded bytes
}
