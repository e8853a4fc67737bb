package main

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// extendsKey is the first key of a mapping that extends another one.
const extendsKey = "x-extends"

// resolve returns a copy of n without anchors, aliases and x-extends. Keys keep
// their order; a key of the extended mapping keeps its position there. Repeated
// keys, merge keys, and aliases that contain themselves are errors.
func resolve(n *yaml.Node) (*yaml.Node, error) {
	return resolver{}.node(n)
}

// resolver holds the aliases being resolved.
type resolver map[*yaml.Node]bool

func (r resolver) node(n *yaml.Node) (*yaml.Node, error) {
	switch n.Kind {
	case yaml.AliasNode:
		if r[n.Alias] {
			return nil, fmt.Errorf("line %d: alias *%s contains itself", n.Line, n.Value)
		}
		r[n.Alias] = true
		defer delete(r, n.Alias)
		return r.node(n.Alias)
	case yaml.MappingNode:
		return r.mapping(n)
	}
	c := *n
	c.Anchor, c.Content = "", nil
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		c.Value = "null" // an empty value would be encoded as ""
	}
	for _, child := range n.Content {
		v, err := r.node(child)
		if err != nil {
			return nil, err
		}
		c.Content = append(c.Content, v)
	}
	return &c, nil
}

func (r resolver) mapping(n *yaml.Node) (*yaml.Node, error) {
	c := *n
	c.Anchor, c.Content = "", nil
	own := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if own[key.Value] {
			return nil, fmt.Errorf("line %d: key %q is repeated", key.Line, key.Value)
		}
		own[key.Value] = true
		if key.ShortTag() == "!!merge" {
			return nil, fmt.Errorf("line %d: YAML 1.2 has no merge keys, use %s", key.Line, extendsKey)
		}
		v, err := r.node(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		if key.Value != extendsKey {
			set(&c, key.Value, v)
			continue
		}
		if v.Kind != yaml.MappingNode || i > 0 {
			return nil, fmt.Errorf("line %d: %s stands first and takes one mapping", key.Line, extendsKey)
		}
		c.Content = v.Content
	}
	return &c, nil
}

// clone returns a deep copy of a resolved node.
func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = nil
	for _, child := range n.Content {
		c.Content = append(c.Content, clone(child))
	}
	return &c
}

// get returns the value of a key, or nil. It accepts nil and nodes that are not
// mappings, so that lookups can be chained.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		i := index(n, key)
		if i < 0 {
			return nil
		}
		n = n.Content[i+1]
	}
	return n
}

// str returns the scalar under a key, or "".
func str(n *yaml.Node, path ...string) string {
	if v := get(n, path...); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// set sets the value of a key, at its old position or at the end.
func set(n *yaml.Node, key string, value *yaml.Node) {
	if i := index(n, key); i >= 0 {
		n.Content[i+1] = value
		return
	}
	n.Content = append(n.Content, scalar(key), value)
}

// drop removes the keys for which when returns true.
func drop(n *yaml.Node, when func(key string, value *yaml.Node) bool) {
	var keep []*yaml.Node
	for key, value := range pairs(n) {
		if !when(key, value) {
			keep = append(keep, scalar(key), value)
		}
	}
	n.Content = keep
}

// dropKeys removes keys by name.
func dropKeys(n *yaml.Node, keys ...string) {
	drop(n, func(key string, _ *yaml.Node) bool { return slices.Contains(keys, key) })
}

// pairs iterates over the keys and values of a mapping in order. It yields
// nothing for other nodes.
func pairs(n *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// index returns the index of a key in the content of a mapping, or -1.
func index(n *yaml.Node, key string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// walk calls f for n and all mappings below it, outer ones first.
func walk(n *yaml.Node, f func(*yaml.Node)) {
	if n.Kind == yaml.MappingNode {
		f(n)
	}
	for _, child := range n.Content {
		walk(child, f)
	}
}

// scalar returns a string node.
func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

// deref returns the target of a local reference such as
// #/components/schemas/Inbox, or nil.
func deref(root *yaml.Node, ref string) *yaml.Node {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	return get(root, strings.Split(path, "/")...)
}
