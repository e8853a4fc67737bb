package main

import "testing"

func TestErrorsAreNotWrapped(t *testing.T) {
	t.Parallel()
	got, err := plain([]byte("{\n" + string(wrappedRefusal) + "\n}\n" + `errors.Wrap(err, "create request")`))
	const want = "{\nreturn res, err\n}\n" + `errors.Wrap(err, "create request")`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	for _, unknown := range []string{"", want, string(wrappedRefusal) + `errors.Wrapf(err, "do request")`} {
		if _, err := plain([]byte(unknown)); err == nil {
			t.Errorf("no error for %q", unknown)
		}
	}
}
