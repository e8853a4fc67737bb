package mail

// Address is a mailbox: a display name, possibly empty, and an address.
type Address struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Attachment describes a leaf part that is not the text of the mail. Its
// content is read with [OpenPart].
type Attachment struct {
	Part        int    // number of the leaf part in the order of the mail
	Filename    string // base name, free of control characters, may be empty
	ContentType string // media type in lower case, without parameters
	ContentID   string // without angle brackets
	Inline      bool   // shown within the HTML rather than listed
	Size        int64  // decoded bytes
}
