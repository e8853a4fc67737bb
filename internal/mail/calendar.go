package mail

import "time"

// Calendar is the event of an invitation, or of an answer to one (RFC 5545, RFC 5546).
// All text in it comes from the sender.
type Calendar struct {
	// Method is in lower case; empty if it is missing or unknown.
	Method string `json:"method,omitempty"`
	// UID is exactly as written; empty if it is missing or could not be written back.
	UID      string `json:"uid,omitempty"`
	Sequence int    `json:"sequence,omitempty"`
	// Status is confirmed, tentative, cancelled or empty.
	Status    string        `json:"status,omitempty"`
	Summary   string        `json:"summary,omitempty"`
	Location  string        `json:"location,omitempty"`
	Organizer *Participant  `json:"organizer,omitempty"`
	Attendees []Participant `json:"attendees,omitempty"`
	AllDay    bool          `json:"all_day,omitempty"`
	Start     *CalendarTime `json:"start,omitempty"`
	End       *CalendarTime `json:"end,omitempty"`
	// Recurrence is the recurrence rule of a series, as written.
	Recurrence string `json:"recurrence,omitempty"`
	// RecurrenceID is the original start of the one event of a series that this is about.
	RecurrenceID *CalendarTime `json:"recurrence_id,omitempty"`
}

// Participant is the organizer or an attendee of an event.
type Participant struct {
	Address
	// Status is the answer of an attendee: needs_action, accepted, declined, tentative
	// or delegated.
	Status string `json:"status,omitempty"`
}

// CalendarTime is a time, or a date without time.
type CalendarTime struct {
	// Local is 2006-01-02T15:04:05 as a clock shows it, or 2006-01-02.
	Local string `json:"local"`
	// Zone is an IANA name where the zone is known, else the name as written. It is
	// empty for dates and for times without a zone.
	Zone string `json:"zone,omitempty"`
	// UTC is the instant, or nil for dates and unknown zones.
	UTC *time.Time `json:"utc,omitempty"`
}
