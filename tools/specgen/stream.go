package main

import (
	"bytes"
	"errors"
	"os"
)

// ogen has a server build each answer whole before it writes it: a page of mail
// then costs several times its size in memory, and a fifth more time. These say
// what is written in place of what, so that a small buffer does.
var (
	wholeAnswer = [][]byte{
		[]byte("e := new(jx.Encoder)\n"),
		[]byte("if _, err := e.WriteTo(w); err != nil {\n"),
	}
	streamedAnswer = [][]byte{
		[]byte("e := jx.NewStreamingEncoder(w, 8<<10)\n"),
		[]byte("if err := e.Close(); err != nil {\n"),
	}
)

// streamAnswers changes the file of ogen's that writes answers.
func streamAnswers(path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	out, err := streamed(src)
	if err != nil {
		return err
	}
	return os.WriteFile(path, out, 0o644)
}

// streamed returns the file with answers written as they are encoded. It fails
// when they are not written the way that it knows.
func streamed(src []byte) ([]byte, error) {
	begins, ends := bytes.Count(src, wholeAnswer[0]), bytes.Count(src, wholeAnswer[1])
	if begins == 0 || begins != ends || begins != bytes.Count(src, []byte(".Encode(e)\n")) {
		return nil, errors.New("answers are not written as expected: has ogen changed?")
	}
	for i := range wholeAnswer {
		src = bytes.ReplaceAll(src, wholeAnswer[i], streamedAnswer[i])
	}
	return src, nil
}
