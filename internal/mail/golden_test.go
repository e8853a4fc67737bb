package mail_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/bounce"
	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/reply"
)

var update = flag.Bool("update", false, "update the golden files")

// golden is what the API returns for a fixture: the message, the content of its
// attachments, the extracted values, and the report if it is one.
type golden struct {
	Message   *mime.Message
	Contents  map[string]string
	Extracted mail.Extraction
	Shown     string // the text of an HTML-only message
	Reply     string
	Snippet   string
	Automated bool
	Report    *bounce.Report `json:",omitempty"`
}

// uncounted leaves out the invisible characters, which have tests of their own.
var uncounted = cmpopts.IgnoreTypes(plaintext.Invisible{})

// TestFixtures reads the messages of testdata/mail and compares each with its
// golden file. The file names say what is unusual about a message.
func TestFixtures(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/mail/*.eml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".eml"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := readGolden(t, raw)
			path := strings.TrimSuffix(file, ".eml") + ".json"
			if *update {
				writeGolden(t, path, got)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := golden{}
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, roundTrip(t, got), uncounted); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			lf := readGolden(t, bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")))
			// Attachments that are text are shorter then.
			if diff := cmp.Diff(got.Message, lf.Message, cmpopts.IgnoreFields(mail.Attachment{}, "Size"), uncounted); diff != "" {
				t.Errorf("LF line ends read differently (-CRLF +LF)\n%s", diff)
			}
		})
	}
}

func readGolden(t *testing.T, raw []byte) golden {
	t.Helper()
	m, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	g := golden{
		Message: m, Contents: map[string]string{}, Reply: reply.Text(m.Text, nil), Snippet: plaintext.Snippet(m.Text),
		Extracted: extract.CodesAndLinks(m.Subject, m.Text, m.HTML), Automated: m.Automated(false),
	}
	if m.Text == "" && m.HTML != "" {
		g.Shown, g.Reply, g.Snippet = htmltext.Text(m.HTML), reply.TextOfPage(htmltext.Read(m.HTML, 0, htmltext.WithMarks, nil), nil), plaintext.Snippet(htmltext.Read(m.HTML, 0, htmltext.OnlyVisible, nil).Plain())
	}
	rep, err := bounce.Read(bytes.NewReader(raw), false, mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Recipients) > 0 {
		g.Report = &rep
	}
	for _, a := range m.Attachments {
		r, err := mime.OpenPart(bytes.NewReader(raw), a.Part, mail.DefaultLimits())
		if err != nil {
			t.Fatalf("part %d: %v", a.Part, err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("part %d: %v", a.Part, err)
		}
		if int64(len(content)) != a.Size {
			t.Errorf("part %d: size %d, but %d bytes can be read", a.Part, a.Size, len(content))
		}
		g.Contents[a.Filename] = strings.ToValidUTF8(string(content), "?")
	}
	return g
}

// roundTrip makes nil and empty alike, as JSON has it.
func roundTrip(t *testing.T, g golden) (out golden) {
	t.Helper()
	data, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func writeGolden(t *testing.T, path string, g golden) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(g); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
