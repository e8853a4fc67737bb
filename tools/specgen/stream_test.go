package main

import (
	"strings"
	"testing"
)

func TestAnswersAreStreamed(t *testing.T) {
	t.Parallel()
	const whole = "\te := new(jx.Encoder)\n\tresponse.Encode(e)\n\tif _, err := e.WriteTo(w); err != nil {\n"
	got, err := streamed([]byte(strings.Repeat(whole, 2)))
	if err != nil {
		t.Fatal(err)
	}
	const want = "\te := jx.NewStreamingEncoder(w, 8<<10)\n\tresponse.Encode(e)\n\tif err := e.Close(); err != nil {\n"
	if string(got) != strings.Repeat(want, 2) {
		t.Errorf("got %s", got)
	}
	for _, unknown := range []string{"", want, whole + "\tresponse.Encode(e)\n", strings.Replace(whole, "WriteTo(w)", "Write(w)", 1)} {
		if _, err := streamed([]byte(unknown)); err == nil {
			t.Errorf("no error for %q", unknown)
		}
	}
}
