package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/netguard"
)

// A stranger's message has images at addresses that only webhooks may reach.
func TestImagesReachNoRangeOfWebhooks(t *testing.T) {
	t.Parallel()
	internal := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s reached an internal host", r.URL) }))
	t.Cleanup(internal.Close)
	cfg, err := load([]string{"POSTROOM_WEBHOOK_ALLOW=0.0.0.0/0,::/0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	images, err := (&node{cfg: cfg}).images()
	if err != nil {
		t.Fatal(err)
	}
	named := strings.Replace(internal.URL, "127.0.0.1", "localhost", 1)
	for _, url := range []string{internal.URL, named, "http://10.0.0.1/a.png", "https://192.168.0.1/a.png", "https://[fd00::1]/", "https://169.254.169.254/"} {
		if _, err := images.Fetch(t.Context(), url+"/admin/delete?all=1"); !errors.Is(err, netguard.ErrRefused) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
