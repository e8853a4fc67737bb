package main

import (
	"bytes"
	"errors"
	"os"
)

// ogen puts "do request: " before what a server refuses and before what keeps it
// from being reached. Each of these says by itself what it is, so it is taken out.
var (
	wrappedRefusal = []byte(`return res, errors.Wrap(err, "do request")`)
	plainRefusal   = []byte(`return res, err`)
)

// plainErrors changes the file of ogen's that makes calls.
func plainErrors(path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	out, err := plain(src)
	if err != nil {
		return err
	}
	return os.WriteFile(path, out, 0o644)
}

// plain returns the file with the errors of requests as they are. It fails when
// they are not wrapped the way that it knows.
func plain(src []byte) ([]byte, error) {
	out := bytes.ReplaceAll(src, wrappedRefusal, plainRefusal)
	if len(out) == len(src) || bytes.Contains(out, []byte(`"do request"`)) {
		return nil, errors.New("errors of requests are not wrapped as expected: has ogen changed?")
	}
	return out, nil
}
