package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/waittest"
)

// A web application whose links work once, in several ways.
func newLinks(t *testing.T) *httptest.Server {
	t.Helper()
	var (
		mu   sync.Mutex
		seen = map[string]int{}
	)
	gone := func(w http.ResponseWriter) { http.Error(w, "gone", http.StatusGone) }
	page := func(w http.ResponseWriter, text string) { _, _ = fmt.Fprint(w, "<html><p>"+text+"</p></html>") }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		kind := strings.Split(r.URL.Path, "/")[1]
		burn := r.Method == http.MethodGet
		switch kind {
		case "head":
			burn = true
		case "preview":
			burn = strings.HasPrefix(r.UserAgent(), "Slackbot")
		}
		used := seen[kind] > 0
		if burn {
			seen[kind]++
		}
		switch kind {
		case "confirm":
			page(w, `<form method="post"><button>Confirm</button></form><script>alert("The link has expired")</script>`)
		case "short":
			http.Redirect(w, r, "/confirm/y?session="+fmt.Sprint(seen[kind]), http.StatusFound)
		case "nohead":
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			page(w, "Hello")
		case "says":
			page(w, map[bool]string{false: "Welcome! This link expires in an hour.", true: "This link was already used."}[used])
		case "login":
			http.Redirect(w, r, map[bool]string{false: "/confirm/home", true: "/confirm/sign-in"}[used], http.StatusFound)
		case "dead":
			gone(w)
		case "broken":
			panic(http.ErrAbortHandler)
		case "loop":
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		default: // get, head, preview
			if used {
				gone(w)
				return
			}
			page(w, "Welcome")
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestDevScansLinks(t *testing.T) {
	t.Parallel()
	app := newLinks(t)
	s := dev(t, "--scan-links")
	want := map[string]string{
		"get": "GET", "head": "HEAD", "preview": "preview", "says": "GET", "login": "GET",
		"confirm": "works", "short": "works", "nohead": "works", "dead": "does not work", "broken": "does not work", "loop": "does not work",
	}
	text := "From: Shop <noreply@shop.example>\r\nSubject: Hi\r\n\r\n"
	for kind := range want {
		text += "Confirm: " + app.URL + "/" + kind + "/3f9c1a7be2d84405\r\n\r\n"
	}
	text += "http://169.254.169.254/latest/meta-data\r\n"
	if err := smtp.SendMail(s.smtp, nil, "noreply@shop.example", []string{"a@name.test"}, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, list := s.call(t, "", http.MethodGet, "/v1/messages", "")
	id := fmt.Sprint(list["data"].([]any)[0].(map[string]any)["id"])
	var found []any
	waittest.Until(t, "the links are visited", func() bool {
		_, m := s.call(t, "", http.MethodGet, "/v1/messages/"+id, "")
		found, _ = m["link_scan"].([]any)
		return len(found) > 0
	})
	got := map[string]string{}
	for _, one := range found {
		link, _ := one.(map[string]any)
		kind := strings.TrimPrefix(fmt.Sprint(link["url"]), app.URL+"/")
		kind, _, _ = strings.Cut(kind, "/")
		switch by := link["burned_by"]; {
		case by != nil:
			got[kind] = fmt.Sprint(by)
		case link["works"] == true:
			got[kind] = "works"
		default:
			got[kind] = "does not work"
		}
		if kind == "http:" && !strings.Contains(fmt.Sprint(link["visits"]), "may not be reached") {
			t.Errorf("the metadata service of a cloud was visited: %v", link["visits"])
		}
	}
	want["http:"] = "does not work"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if log := s.log.String(); !strings.Contains(log, "burned_by=preview") || strings.Contains(log, "3f9c1a7be2d84405") {
		t.Errorf("the log: %s", log)
	}
}

// Without the flag, and in a service, nobody visits a link.
func TestNoOtherServerVisitsLinks(t *testing.T) {
	t.Parallel()
	if _, said, err := runCommand(t, t.TempDir(), nil, "serve", "--scan-links"); err == nil || !strings.Contains(said, "unknown flag") {
		t.Errorf("%v %s", err, said)
	}
	visits := make(chan string, 10)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { visits <- r.Method }))
	t.Cleanup(app.Close)
	s := dev(t)
	text := "From: a@shop.example\r\nSubject: Hi\r\n\r\nConfirm: " + app.URL + "/x\r\n"
	if err := smtp.SendMail(s.smtp, nil, "a@shop.example", []string{"a@name.test"}, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, list := s.call(t, "", http.MethodGet, "/v1/messages", "")
	id := fmt.Sprint(list["data"].([]any)[0].(map[string]any)["id"])
	if _, m := s.call(t, "", http.MethodGet, "/v1/messages/"+id, ""); m["link_scan"] != nil {
		t.Errorf("%v", m["link_scan"])
	}
	if len(visits) > 0 {
		t.Errorf("a visit: %s", <-visits)
	}
}
