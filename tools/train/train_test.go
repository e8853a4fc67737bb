package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/tools/labelled"
)

const root = "../.."

// The weights in the repository are what training gives from the messages in the
// repository. Processors may round differently in the last place.
func TestWeightsAreWhatTrainingGives(t *testing.T) {
	t.Parallel()
	all, err := labelled.Own(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSet(root, all)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	want, err := extract.ParseModel(string(text))
	if err != nil {
		t.Fatal(err)
	}
	got := s.train(func(m *labelled.Message) bool { return !m.HeldOut })
	for _, kind := range []string{extract.CodeSigns, extract.NoCodeSigns, extract.LinkSigns, extract.NoLinkSigns} {
		names, have := extract.SignNames(kind), want.Weights(kind)
		for i, w := range got.Weights(kind) {
			if math.Abs(w-have[i]) > 0.011 {
				t.Errorf("%s %s: weights.txt has %.2f, training gives %.2f: run make train", kind, names[i], have[i], w)
			}
		}
	}
}

// Training learns from the messages that it may use, and a folder of a user
// counts among them.
func TestTrainWithAFolder(t *testing.T) {
	t.Parallel()
	copyOf := t.TempDir()
	data := filepath.Join("internal", "mail", "extract", "testdata")
	for _, name := range []string{"languages/en.txt", "languages/fi.txt", "codes/en.txt"} {
		text, err := os.ReadFile(filepath.Join(root, data, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(copyOf, data, name), string(text))
	}
	more := t.TempDir()
	write(t, filepath.Join(more, "ann.jsonl"), `{"id":"ann-1","author":"ann","lang":"en","subject":"Your code","text":"Your code is 482913.","expected":{"otp":"482913","codes":["482913"],"action":null}}
{"id":"ann-2","author":"ann","lang":"en","subject":"Order 7","text":"Order 551204 is on its way.","expected":{"otp":null,"codes":[],"action":null}}
`)
	var out bytes.Buffer
	if err := run(&out, copyOf, []string{more}, true, true, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cross-validation by author", "cross-validation by language", "\ntrained\n", "\nann ", "\nheld out\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
	text, err := os.ReadFile(filepath.Join(copyOf, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	m, err := extract.ParseModel(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.CodesAndLinks("Your code", "Your code is 482913.", ""); got.OTP == nil || *got.OTP != "482913" {
		t.Errorf("the new model finds %q", got.Codes)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
