// Package template fills the variables of a mail: {{name}} stands for a value
// of the caller's data, and a dotted path such as {{order.number}} for one
// inside an object. There is nothing else: no logic, no functions, and nothing
// to reach but the data. What looks like a variable and is none is refused when
// the template is read, so that no recipient ever sees it.
//
// In html a value is escaped for the place that it stands in, whoever wrote it:
// it adds no mark-up, ends no attribute, is no script, and brings no link with
// a scheme that runs code. Where nothing of that can be promised, as inside
// <script>, no variable may stand. {{{name}}} puts a value into html as it is,
// for those who made it. In subject and text both mean the value as it is, but
// a subject takes no line break.
//
// A value is put in once, and never read as a template. Rendering takes time
// and memory in proportion to the template and to the most that it may yield.
package template

import "fmt"

// Part is a part of a mail, by its name in the API.
type Part string

// The parts of a mail.
const (
	Subject Part = "subject"
	HTML    Part = "html"
	Text    Part = "text"
)

// most is how many characters a part may have once it is rendered: as many as
// the contract allows for one that is sent as it is.
var most = map[Part]int{Subject: 998, HTML: 1_000_000, Text: 500_000}

// Error says why a template cannot be read or rendered.
type Error struct {
	Part Part
	// Variable is the path of the variable whose value is at fault; empty when
	// it is the part itself.
	Variable string
	// Reason goes on after the name of what is at fault.
	Reason string
}

func (e *Error) Error() string {
	if e.Variable != "" {
		return fmt.Sprintf("variable %s in %s %s", e.Variable, e.Part, e.Reason)
	}
	return string(e.Part) + " " + e.Reason
}

// Source is what a mail says: with variables before it is rendered, without
// after. A part that is empty is not there.
type Source struct {
	Subject, HTML, Text string
}

// Mail is the template of a mail, ready to be rendered any number of times. It
// is safe for use by many goroutines.
type Mail struct {
	parts []compiled
}

type compiled struct {
	part   Part
	pieces []piece
}

// Parse reads the parts of a template. The error is an *Error.
func Parse(src Source) (*Mail, error) {
	m := &Mail{}
	for _, p := range []struct {
		part Part
		text string
	}{{Subject, src.Subject}, {HTML, src.HTML}, {Text, src.Text}} {
		pieces, err := parse(p.part, p.text)
		if err != nil {
			return nil, err
		}
		m.parts = append(m.parts, compiled{p.part, pieces})
	}
	return m, nil
}

// Render fills in the values of data, which is JSON as encoding/json decodes
// it, numbers best as json.Number: they then read as they were written.
// Variables without a value, or whose value is null, are rendered as nothing
// and listed by their paths, each once, in their order. The error is an *Error.
func (m *Mail) Render(data map[string]any) (out Source, missing []string, err error) {
	r := renderer{data: data, seen: map[string]bool{}}
	for _, p := range m.parts {
		text, err := r.render(p)
		if err != nil {
			return Source{}, nil, err
		}
		switch p.part {
		case Subject:
			out.Subject = text
		case HTML:
			out.HTML = text
		case Text:
			out.Text = text
		}
	}
	return out, r.missing, nil
}
