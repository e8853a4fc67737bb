package mail_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/bounce"
	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/internal/mail/mime"
)

// reportCase is a line of testdata/reports/expected.jsonl. A nil field is not
// checked.
type reportCase struct {
	File     string `json:"file"`
	Expected struct {
		OTP        json.RawMessage `json:"otp"` // null means that there is none
		Codes      *[]string       `json:"codes"`
		ActionLink *string         `json:"action_link"`
		Links      *[]string       `json:"links"`

		Subject     *string   `json:"subject"`
		From        *string   `json:"from"`
		FromName    *string   `json:"from_name"`
		Date        *string   `json:"date"`
		HTML        *bool     `json:"html"`
		Attachments *[]string `json:"attachments"`
		Inline      *[]string `json:"inline"`
		TextHas     []string  `json:"text_has"`
		TextNot     []string  `json:"text_not"`
		Automated   *bool     `json:"automated"`

		ReplyText    *string  `json:"extracted_text"`
		ReplyTextHas []string `json:"extracted_text_has"`
		ReplyTextNot []string `json:"extracted_text_not"`
	} `json:"expected"`
}

// TestReports reads messages that other programs read wrong, as their users
// reported, and compares what the API shows of them.
func TestReports(t *testing.T) {
	t.Parallel()
	lines, err := os.ReadFile("testdata/reports/expected.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(lines) {
		var c reportCase
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(c.File, ".eml"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join("testdata/reports", c.File))
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, raw)
		})
	}
}

// TestReportsOfBounces reads the messages of testdata/reports about a sent email.
func TestReportsOfBounces(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]bounce.Recipient{
		"41-dsn-delayed":      {{Email: "a@out.example", Outcome: bounce.Delayed, Status: "4.4.1", Code: 450, Diagnostic: "450 4.4.1 connection timed out, will retry"}},
		"42-dsn-no-smtp-code": {{Email: "a@out.example", Outcome: bounce.Bounced, Status: "5.4.4", Diagnostic: "Host not found"}},
		"43-dsn-one-of-two": {
			{Email: "b@out.example", Outcome: bounce.Bounced, Status: "5.1.1", Code: 550, Diagnostic: "550 5.1.1 no such user"},
			{Email: "c@out.example", Outcome: bounce.Delivered, Status: "2.1.9"},
		},
		"44-dsn-cut-off": {{Email: "a@out.example", Outcome: bounce.Bounced, Status: "5.1.1", Code: 550, Diagnostic: "550 5.1.1 no such user"}},
	} {
		raw, err := os.ReadFile(filepath.Join("testdata/reports", file+".eml"))
		if err != nil {
			t.Fatal(err)
		}
		filled := strings.NewReplacer("@RETURN-PATH@", "r@own.example", "@RECIPIENT@", "a@out.example",
			"@RECIPIENT-1@", "b@out.example", "@RECIPIENT-2@", "c@out.example", "@ORIGINAL-ID@", "<sent@own.example>").Replace(string(raw))
		got, err := bounce.Read(strings.NewReader(filled), true, mail.DefaultLimits())
		if err != nil || got.OriginalID != "<sent@own.example>" {
			t.Errorf("%s: about %s, %v", file, got.OriginalID, err)
		}
		if diff := cmp.Diff(want, got.Recipients, cmpopts.IgnoreFields(bounce.Recipient{}, "Hard", "Reason", "Original")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", file, diff)
		}
	}
}

func (c *reportCase) check(t *testing.T, raw []byte) {
	t.Helper()
	m, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	d, want := extract.Derive(m, mail.DefaultLimits()), &c.Expected
	files, inline := []string{}, []string{}
	for _, a := range m.Attachments {
		files = append(files, a.Filename)
		if a.Inline {
			inline = append(inline, a.Filename)
		}
	}
	if want.OTP != nil {
		var otp *string
		if err := json.Unmarshal(want.OTP, &otp); err != nil {
			t.Fatal(err)
		}
		differs(t, "otp", otp, d.Extracted.OTP)
	}
	same(t, "codes", want.Codes, d.Extracted.Codes)
	same(t, "links", want.Links, d.Extracted.Links)
	if want.ActionLink != nil {
		differs(t, "action_link", want.ActionLink, d.Extracted.ActionLink)
	}
	same(t, "subject", want.Subject, m.Subject)
	from := mail.Address{}
	if m.From != nil {
		from = *m.From
	}
	same(t, "from", want.From, from.Email)
	same(t, "from_name", want.FromName, from.Name)
	same(t, "date", want.Date, m.Date.UTC().Format(time.RFC3339))
	same(t, "html", want.HTML, m.HTML != "")
	same(t, "attachments", want.Attachments, files)
	same(t, "inline", want.Inline, inline)
	same(t, "automated", want.Automated, m.Automated(false))
	same(t, "extracted_text", want.ReplyText, strings.TrimSpace(d.ReplyText))
	contains(t, "text", d.Text, want.TextHas, want.TextNot)
	contains(t, "extracted_text", d.ReplyText, want.ReplyTextHas, want.ReplyTextNot)
}

func same[T any](t *testing.T, what string, want *T, got T) {
	t.Helper()
	if want != nil {
		differs(t, what, *want, got)
	}
}

func differs[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

func contains(t *testing.T, what, text string, has, not []string) {
	t.Helper()
	for _, s := range has {
		if !strings.Contains(text, s) {
			t.Errorf("%s lacks %q: %q", what, s, text)
		}
	}
	for _, s := range not {
		if strings.Contains(text, s) {
			t.Errorf("%s has %q: %q", what, s, text)
		}
	}
}
