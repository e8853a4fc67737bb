package main

import (
	"strings"
	"testing"
)

func TestAnswersAreNotChecked(t *testing.T) {
	t.Parallel()
	checked := "\t\t\tread(response)\n" + string(checkedAnswer) + "\t\t\treturn &response, nil\n"
	got, err := lenient([]byte(strings.Repeat(checked, 2)))
	if err != nil {
		t.Fatal(err)
	}
	const want = "\t\t\tread(response)\n\t\t\treturn &response, nil\n"
	if string(got) != strings.Repeat(want, 2) {
		t.Errorf("got %s", got)
	}
	for _, unknown := range []string{"", want, checked + "if err := response.Validate(); err == nil {}\n"} {
		if _, err := lenient([]byte(unknown)); err == nil {
			t.Errorf("no error for %q", unknown)
		}
	}
}
