// Command sbom writes the modules that are in a Go program as a CycloneDX 1.6 bill of
// materials. It reads them from the program itself, so the list holds what was linked.
//
//	sbom PROGRAM OUTPUT
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

type document struct {
	Format       string      `json:"bomFormat"`
	SpecVersion  string      `json:"specVersion"`
	SerialNumber string      `json:"serialNumber"`
	Version      int         `json:"version"`
	Metadata     metadata    `json:"metadata"`
	Components   []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Purl    string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM OUTPUT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(program, output string) error {
	data, err := os.ReadFile(program) // #nosec G703 -- the caller names the program
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	list, err := json.MarshalIndent(describe(info, sha256.Sum256(data)), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(output, append(list, '\n'), 0o644) // #nosec G306 G703 -- a public list
}

// describe lists the modules of a program. The serial number is made from the program's
// hash (RFC 9562, version 8), so the same program has the same document.
func describe(info *debug.BuildInfo, sum [sha256.Size]byte) document {
	id := [16]byte(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	doc := document{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		SerialNumber: fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		Metadata: metadata{Component: component{
			Type: "application", Name: info.Path, Version: info.Main.Version,
			Hashes: []hash{{Algorithm: "SHA-256", Content: hex.EncodeToString(sum[:])}},
		}},
		Components: []component{{
			Type: "library", Name: "std", Version: info.GoVersion,
			Purl: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
		}},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		doc.Components = append(doc.Components, moduleComponent(m))
	}
	return doc
}

// moduleComponent describes one module. Its hash is the one of go.sum ("h1:", a
// SHA-256 over the list of the module's files).
func moduleComponent(m *debug.Module) component {
	c := component{Type: "library", Name: m.Path, Version: m.Version, Purl: "pkg:golang/" + m.Path + "@" + m.Version}
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == sha256.Size {
		c.Hashes = []hash{{Algorithm: "SHA-256", Content: hex.EncodeToString(sum)}}
	}
	return c
}
