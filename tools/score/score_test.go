package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScoreFolder scores a folder whose labels have no reason, whose grades
// differ, and whose bounce is only known by its null reverse-path.
func TestScoreFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("bounces.jsonl", `{"id":"1","file":"a.eml","tier":"freeform","expected":[{"recipient":"ann@a.example","kind":"bounce","bounce_type":"hard","reason":null}]}
{"id":"2","file":"b.eml","tier":"freeform","grade":"policy","expected":[{"recipient":"bob@b.example","kind":"bounce","bounce_type":"soft","reason":null}]}
`)
	write("a.eml", "From: gateway@c.example\nSubject: Undelivered\n\nYour message was not delivered.\n<ann@a.example>: 552 mailbox full\n")
	write("b.eml", "From: MAILER-DAEMON@c.example\nSubject: Undelivered\n\nYour message was not delivered.\n<bob@b.example>: 550 5.1.1 no such user\n")

	raw := base64.StdEncoding.EncodeToString([]byte("Subject: Hi\n\nOrder 20048812. Your login code is 482913.\n"))
	write("codes.jsonl", `{"id":"3","raw_b64":"`+raw+`","expected":{"codes":["20048812"]}}
{"id":"4","subject":"Sign in","text":"Your login code is 553028.","html":"<p>Or <a href='https://a.example/sign-in?t=8f2a91c0d7'>sign in</a></p>","expected":{"codes":["553027"],"action":"https://a.example/confirm"}}`)

	var out bytes.Buffer
	if err := run(t.Context(), &out, folder, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1: a.eml hard false (mailbox_full), want hard (?)", "2: b.eml hard true (no_mailbox), want soft (?)",
		`3: otp "482913" is wrong`, `dropped "20048812" in text`, `chosen "482913" in text`,
		`4: otp "553028" is wrong`, `want ["https://a.example/confirm"]`, "bounces hard or soft ", "bounces hard or soft, policy ", "0.000 (0 of 2)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
}
