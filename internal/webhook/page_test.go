//go:build clients

package webhook_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/postroom/postroom/internal/skiptest"
)

// receivers run the function verify of docs/webhooks.md on a list of requests in
// JSON, given on the standard input, and print true or false for each.
var receivers = map[string]struct {
	file, before, after string
	command             []string
}{
	"go": {
		"main.go",
		"package main\n\nimport (\n" +
			"\"crypto/hmac\"\n\"crypto/sha256\"\n\"encoding/base64\"\n\"encoding/json\"\n\"fmt\"\n\"os\"\n\"strconv\"\n\"strings\"\n\"time\"\n)\n",
		"func main() {\n" +
			"var posts []struct{ With, ID, Timestamp, Signature, Body string }\n" +
			"if err := json.NewDecoder(os.Stdin).Decode(&posts); err != nil {\npanic(err)\n}\n" +
			"for _, p := range posts {\nfmt.Println(verify(p.With, p.ID, p.Timestamp, p.Signature, []byte(p.Body)))\n}\n}\n",
		[]string{"go", "run"},
	},
	"javascript": {
		"main.cjs", "",
		"for (const p of JSON.parse(require('node:fs').readFileSync(0)))\n" +
			"  console.log(verify(p.with, p.id, p.timestamp, p.signature, p.body));\n",
		[]string{"node"},
	},
	"python": {
		"main.py", "",
		"import json, sys\nfor p in json.load(sys.stdin):\n" +
			"    print(str(verify(p['with'], p['id'], p['timestamp'], p['signature'], p['body'].encode())).lower())\n",
		[]string{"python3"},
	},
	"ruby": {
		"main.rb", "require 'json'\n",
		"JSON.parse(STDIN.read).each { |p| puts verify(p['with'], p['id'], p['timestamp'], p['signature'], p['body']) }\n",
		[]string{"ruby"},
	},
	"php": {
		"main.php", "<?php\n",
		"foreach (json_decode(stream_get_contents(STDIN), true) as $p)\n" +
			"    echo verify($p['with'], $p['id'], $p['timestamp'], $p['signature'], $p['body']) ? \"true\\n\" : \"false\\n\";\n",
		[]string{"php"},
	},
}

// The functions of the documentation accept what is sent, and reject what was
// changed on the way or is too old.
func TestProgramsOfThePageVerify(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "webhooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	posts, secret := sentPosts(t, 12)
	var looks []look
	for _, p := range posts {
		sent, err := strconv.ParseInt(p.timestamp, 10, 64)
		if err != nil || time.Since(time.Unix(sent, 0)) > 4*time.Minute {
			t.Fatalf("a request is from %q: %v", p.timestamp, err)
		}
		changed := func(what string, good bool, edit func(*look)) {
			l := look{ID: p.id, Timestamp: p.timestamp, Signature: p.signature, Body: p.body, With: secret, what: what, good: good}
			edit(&l)
			looks = append(looks, l)
		}
		changed("as it came", true, func(*look) {})
		changed("with another signature before it", true, func(l *look) { l.Signature = "v1,AAAA " + l.Signature })
		changed("another body", false, func(l *look) { l.Body += " " })
		changed("another ID", false, func(l *look) { l.ID += "1" })
		changed("a timestamp in words", false, func(l *look) { l.Timestamp = "now" })
		changed("another timestamp", false, func(l *look) { l.Timestamp = strconv.FormatInt(sent-1, 10) })
		changed("another secret", false, func(l *look) { l.With = "whsec_" + strings.Repeat("A", 43) + "=" })
		changed("no signature", false, func(l *look) { l.Signature = "" })
		changed("a signature of another version", false, func(l *look) { l.Signature = "v2," + strings.TrimPrefix(l.Signature, "v1,") })
	}
	old := signedAt(t, secret, time.Now().Add(-time.Hour))
	early := signedAt(t, secret, time.Now().Add(time.Hour))
	looks = append(looks, old, early)
	input, err := json.Marshal(looks)
	if err != nil {
		t.Fatal(err)
	}
	for language, r := range receivers {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			_, code, found := strings.Cut(string(page), "\n```"+language+"\n")
			code, _, closed := strings.Cut(code, "\n```\n")
			if !found || !closed {
				t.Fatalf("docs/webhooks.md has no program in %s", language)
			}
			if _, err := exec.LookPath(r.command[0]); err != nil {
				skiptest.OutsideCI(t, r.command[0]+" is not installed")
			}
			file := filepath.Join(t.TempDir(), r.file)
			if err := os.WriteFile(file, []byte(r.before+code+"\n"+r.after), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), r.command[0], append(r.command[1:], file)...)
			var out, faults bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &faults
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, &faults)
			}
			said := strings.Fields(out.String())
			if len(said) != len(looks) {
				t.Fatalf("%d results for %d requests:\n%s%s", len(said), len(looks), &out, &faults)
			}
			for i, l := range looks {
				if said[i] != strconv.FormatBool(l.good) {
					t.Errorf("%s: %s, want %v", l.what, said[i], l.good)
				}
			}
		})
	}
}

// signedAt returns a request that was signed at a time more than 5 minutes away.
func signedAt(t *testing.T, secret string, at time.Time) look {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	l := look{ID: "evt_1", Timestamp: strconv.FormatInt(at.Unix(), 10), Body: "{}", With: secret, what: "signed at another time"}
	if l.Signature, err = w.Sign(l.ID, at, []byte(l.Body)); err != nil {
		t.Fatal(err)
	}
	return l
}
