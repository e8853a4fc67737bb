package main

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// usage tells which mappings of a document requests reach and which answers
// reach, references followed.
type usage struct {
	root              *yaml.Node
	requests, answers map[*yaml.Node]bool
}

// uses finds out what the operations of a document use.
func uses(root *yaml.Node) usage {
	u := usage{root: root, requests: map[*yaml.Node]bool{}, answers: map[*yaml.Node]bool{}}
	for _, item := range pairs(get(root, "paths")) {
		u.reach(get(item, "parameters"), u.requests)
		for _, op := range operations(item) {
			u.reach(get(op, "parameters"), u.requests)
			u.reach(get(op, "requestBody"), u.requests)
			u.reach(get(op, "responses"), u.answers)
		}
	}
	return u
}

func (u usage) reach(n *yaml.Node, seen map[*yaml.Node]bool) {
	if n == nil || seen[n] {
		return
	}
	if n.Kind == yaml.MappingNode {
		seen[n] = true
		u.reach(deref(u.root, str(n, "$ref")), seen)
	}
	for _, child := range n.Content {
		u.reach(child, seen)
	}
}

// layoutTimes gives each time its layout. A time that requests and answers
// share would need two, which is an error.
func (u usage) layoutTimes() error {
	var err error
	walk(u.root, func(n *yaml.Node) {
		if str(n, "format") != "date-time" || err != nil {
			return
		}
		switch {
		case u.requests[n] && u.answers[n]:
			err = fmt.Errorf("line %d: this time is used in requests and in answers", n.Line)
		case u.requests[n]:
			set(n, "x-ogen-time-format", scalar(timeIn))
		default:
			set(n, "x-ogen-time-format", scalar(timeOut))
		}
	})
	return err
}

// openEnums lets answers hold any string where the contract has an enum: an
// enum in place goes, a reference to one becomes a plain string. Requests
// keep theirs. An enum inside an object that both use cannot be both, which
// is an error.
func (u usage) openEnums() error {
	named := map[*yaml.Node]bool{}
	for _, s := range pairs(get(u.root, "components", "schemas")) {
		named[s] = get(s, "enum") != nil
	}
	var err error
	walk(u.root, func(n *yaml.Node) {
		target := deref(u.root, str(n, "$ref"))
		inPlace := isEnum(n) && !named[n]
		if err != nil || !u.answers[n] || !named[target] && !inPlace {
			return
		}
		if u.requests[n] {
			err = fmt.Errorf("line %d: this enum is used in requests and in answers", n.Line)
			return
		}
		if inPlace {
			dropKeys(n, "enum")
			return
		}
		dropKeys(n, "$ref")
		set(n, "type", scalar("string"))
	})
	return err
}

// isEnum tells whether a schema lists its values. A property may have the
// name enum too, but its value is a mapping.
func isEnum(n *yaml.Node) bool {
	e := get(n, "enum")
	return e != nil && e.Kind == yaml.SequenceNode
}
