// Package labelled reads messages with known codes and links: the project's own
// test messages and those of any folder.
package labelled

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
)

// Message is a message with its labels.
type Message struct {
	ID, Author, Lang, Kind string
	Subject, Text, HTML    string

	OTP      string              // the code to type, or "" if there is none or it is unclear which
	Codes    []string            // all codes
	Accept   map[string][]string // other right spellings of a code
	Actions  []string            // the action link, in the spellings that are right; none if empty
	ActionOK []string            // links that are not wrong as the action link
	CodesOK  []string            // values that are neither right nor wrong as a code

	HeldOut bool // only for the score: the model is never trained on it
}

// Own returns the messages of internal/mail/extract/testdata. root is the root
// of the repository.
func Own(root string) ([]Message, error) {
	data := filepath.Join(root, "internal", "mail", "extract", "testdata")
	all, err := languages(filepath.Join(data, "languages"))
	if err != nil {
		return nil, err
	}
	cases, err := codeCases(filepath.Join(data, "codes"))
	if err != nil {
		return nil, err
	}
	all = append(all, cases...)
	for _, set := range []string{"train", "validation"} {
		more, err := Folder(filepath.Join(data, "mail", set))
		if err != nil {
			return nil, err
		}
		for i := range more {
			more[i].HeldOut = set == "validation"
		}
		all = append(all, more...)
	}
	return all, nil
}

// Folder returns the messages of the files *.jsonl and *.jsonl.gz of a folder
// that hold codes. A file is the author of records that name none.
func Folder(dir string) (all []Message, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		list, err := ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// record is one line of a file, in either of two forms: a message in parts, or
// a raw message.
type record struct {
	ID       string `json:"id"`
	Author   string `json:"author"`
	Lang     string `json:"lang"`
	Kind     string `json:"kind"`
	Subject  string `json:"subject"`
	Text     string `json:"text"`
	HTML     string `json:"html"`
	Raw      []byte `json:"raw_b64"`
	Expected json.RawMessage
}

type labels struct {
	OTP      *string             `json:"otp"`
	Codes    []string            `json:"codes"`
	Accept   map[string][]string `json:"accept"`
	Action   string              `json:"action"`
	ActionOK []string            `json:"action_ok"`
	CodesOK  []string            `json:"tolerated"`
	Links    []string            `json:"links"`
	LinksOK  []string            `json:"links_tolerated"`
}

// maxRecord is the maximum length of a line in bytes.
const maxRecord = 64 << 20

// ReadFile reads a file of records.
func ReadFile(file string) (list []Message, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var in io.Reader = f
	name, packed := strings.CutSuffix(filepath.Base(file), ".gz")
	if packed {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	author := strings.TrimSuffix(name, ".jsonl")
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRecord)
	for n := 1; lines.Scan(); n++ {
		m, ok, err := parseRecord(lines.Bytes(), author)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if ok {
			list = append(list, m)
		}
	}
	return list, lines.Err()
}

// parseRecord reads a line. It returns false for a record of another kind, such
// as a bounce.
func parseRecord(line []byte, author string) (m Message, ok bool, err error) {
	var r record
	var l labels
	if err := json.Unmarshal(line, &r); err != nil {
		return m, false, err
	}
	if len(r.Expected) == 0 || r.Expected[0] != '{' || json.Unmarshal(r.Expected, &l) != nil || l.Codes == nil {
		return m, false, nil
	}
	m = Message{
		ID: r.ID, Author: cmp.Or(r.Author, author), Lang: r.Lang, Kind: r.Kind, Subject: r.Subject, Text: r.Text, HTML: r.HTML,
		Codes: l.Codes, Accept: l.Accept, CodesOK: l.CodesOK, Actions: l.Links, ActionOK: append(l.ActionOK, l.LinksOK...),
	}
	if l.Action != "" {
		m.Actions = append(m.Actions, l.Action)
	}
	switch {
	case l.OTP != nil:
		m.OTP = *l.OTP
	case len(r.Raw) > 0 && len(l.Codes) == 1:
		m.OTP = l.Codes[0]
	}
	if len(r.Raw) > 0 {
		parsed, err := mime.Parse(bytes.NewReader(r.Raw), mail.DefaultLimits())
		if err != nil {
			return m, false, err
		}
		m.Subject, m.Text, m.HTML = parsed.Subject, parsed.Text, parsed.HTML
	}
	return m, true, nil
}

// IsCode reports whether a value is one of the codes of a message, in any
// spelling that is right.
func (m *Message) IsCode(value string) bool {
	return slices.ContainsFunc(m.Codes, func(code string) bool { return m.Is(code, value) })
}

// IsTolerated reports whether a value is neither right nor wrong as a code.
func (m *Message) IsTolerated(value string) bool {
	return slices.ContainsFunc(m.CodesOK, func(code string) bool { return m.Is(code, value) })
}

// Is reports whether a value is a certain code of the message.
func (m *Message) Is(code, value string) bool {
	value = Plain(value)
	if code == "" || Plain(code) == value {
		return code != ""
	}
	return slices.ContainsFunc(m.Accept[code], func(s string) bool { return Plain(s) == value })
}
