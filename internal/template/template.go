// Package template fills the variables of a message: {{name}} stands for a value of the
// caller's data, and a dotted path such as {{order.number}} for a value inside an object.
// {{#if name}} … {{else}} … {{/if}} shows one of two texts, and {{#each list}} … {{/each}}
// repeats a text for each item of a list; {{else}} there is for an empty list. Inside it, a
// name is a field of the item, or else of what is around it, and {{this}} is the item. There
// are no other blocks and no functions, and only the data can be reached. Text that looks
// like a variable and is not one is refused when the template is parsed, so that no
// recipient ever sees it.
//
// In html, blocks are only allowed between elements and in their text, where leaving out or
// repeating one changes the place of no variable. The tag of a block that is alone on its
// line leaves no empty line behind.
//
// In html a value is escaped for its place, whoever wrote it: it adds no markup, ends no
// attribute, is not a script, and adds no link with a scheme that runs code. Where that
// cannot be guaranteed, as inside <script>, variables are refused. {{{name}}} inserts a
// value into html unescaped, for callers who created it. In subject and text both forms
// insert the value unchanged, but a subject must not contain a line break.
//
// A value is inserted once and never parsed as a template. Rendering takes time and memory
// in proportion to the template and to the maximum size of the result.
package template

import "fmt"

// Part is a part of a message, by its name in the API.
type Part string

// The parts of a message.
const (
	Subject Part = "subject"
	HTML    Part = "html"
	Text    Part = "text"
)

// most is how many characters a rendered part may have: the contract's limit for a part
// that is sent without a template.
var most = map[Part]int{Subject: 998, HTML: 1_000_000, Text: 500_000}

// Error says why a template cannot be parsed or rendered.
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

// Source is the text of a message, with variables before it is rendered and without them
// afterwards. An empty part is absent.
type Source struct {
	Subject, HTML, Text string
}

// Template is a parsed template, which can be rendered any number of times. It is safe for
// use by many goroutines.
type Template struct {
	parts []compiled
}

type compiled struct {
	part   Part
	pieces []piece
}

// Parse parses the parts of a template. The error is an *Error.
func Parse(src Source) (*Template, error) {
	m := &Template{}
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

// Render inserts the values of data, which is JSON as encoding/json decodes it, preferably
// with json.Number, so that numbers keep their spelling. A variable without a value, or with
// null, is rendered as nothing. missing lists the paths of these variables once each, in
// their order. The error is an *Error.
func (m *Template) Render(data map[string]any) (out Source, missing []string, err error) {
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
