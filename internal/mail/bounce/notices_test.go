package bounce

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
)

var showMisses = flag.Bool("misses", false, "print each record of testdata/notices that is read wrong, except those held out")

// notice is one record of testdata/notices; its README.md has the format.
type notice struct {
	file, name string
	heldOut    bool
	want       []label
	raw        string
}

// label is what a notice reports about one recipient.
type label struct {
	email, meaning, status string
	found                  bool
}

// noticeScore counts the recipients that were read right.
type noticeScore struct {
	notices, wanted, found, reported  int
	meaning, status, statuses, alarms int
}

func (s noticeScore) String() string {
	return fmt.Sprintf("%d notices: recipients P %.3f R %.3f, hard or soft %d of %d, status %d of %d, false alarms %d",
		s.notices, share(s.found, s.reported), share(s.found, s.wanted), s.meaning, s.found, s.status, s.statuses, s.alarms)
}

func share(part, whole int) float64 { return float64(part) / float64(max(whole, 1)) }

// TestNotices scores Read on testdata/notices. The thresholds are what the
// rules reach today; a change may only raise them.
func TestNotices(t *testing.T) {
	t.Parallel()
	var open, held noticeScore
	for _, n := range readNotices(t) {
		s := &open
		if n.heldOut {
			s = &held
		}
		rep, err := Read(strings.NewReader(n.raw), n.file != "ordinary.txt", mail.DefaultLimits())
		if err != nil {
			t.Fatalf("%s/%s: %v", n.file, n.name, err)
		}
		for _, miss := range s.add(n, rep) {
			if *showMisses && (!n.heldOut || n.file == "more.txt") {
				t.Logf("%s/%s: %s", n.file, n.name, miss)
			}
		}
	}
	t.Log("open:     ", open)
	t.Log("held out: ", held)
	if open.notices < 150 || held.notices < 50 {
		t.Errorf("%d and %d notices: some are missing", open.notices, held.notices)
	}
	for _, s := range []struct {
		name string
		noticeScore
		recipients, meaning, status float64
	}{
		{"open", open, 1, 1, 1},
		{"held out", held, 1, 0.98, 1},
	} {
		if share(s.found, s.reported) < s.recipients || share(s.found, s.wanted) < s.recipients ||
			share(s.noticeScore.meaning, s.found) < s.meaning || share(s.noticeScore.status, s.statuses) < s.status || s.alarms > 0 {
			t.Errorf("%s: less is read right than before", s.name)
		}
	}
}

// add counts one notice and returns what was read wrong.
func (s *noticeScore) add(n notice, rep Report) (misses []string) {
	miss := func(format string, args ...any) { misses = append(misses, fmt.Sprintf(format, args...)) }
	s.notices++
	s.wanted += len(n.want)
	for _, r := range rep.Recipients {
		i := slices.IndexFunc(n.want, func(l label) bool { return strings.EqualFold(l.email, r.Email) && !l.found })
		s.reported++
		if i < 0 {
			if len(n.want) == 0 {
				s.alarms++
			}
			miss("false recipient %q %s", r.Email, r.Outcome)
			continue
		}
		want := &n.want[i]
		want.found = true
		s.found++
		if got := meaningOf(r); got == want.meaning {
			s.meaning++
		} else {
			miss("%s is %s (%s, status %q, code %d), want %s: %s", r.Email, got, r.Reason, r.Status, r.Code, want.meaning, r.Diagnostic)
		}
		if want.status != "-" {
			s.statuses++
			if r.Status == want.status {
				s.status++
			} else {
				miss("%s has status %q, want %q", r.Email, r.Status, want.status)
			}
		}
	}
	for _, l := range n.want {
		if !l.found {
			miss("recipient %q not found", l.email)
		}
	}
	return misses
}

func meaningOf(r Recipient) string {
	switch {
	case r.Outcome == Bounced && r.Hard:
		return "hard"
	case r.Outcome == Bounced:
		return "soft"
	}
	return string(r.Outcome)
}

// readNotices reads testdata/notices and checks its format.
func readNotices(t *testing.T) (all []notice) {
	t.Helper()
	files, err := filepath.Glob("testdata/notices/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, record := range strings.Split("\n"+string(b), "\n== ")[1:] {
			n := parseNotice(t, filepath.Base(file), record)
			sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", n.file, n.name, i+1))
			n.heldOut = sum[0]%3 == 0
			all = append(all, n)
		}
	}
	return all
}

func parseNotice(t *testing.T, file, record string) notice {
	t.Helper()
	first, rest, _ := strings.Cut(record, "\n")
	fields := strings.Split(first, " | ")
	n := notice{file: file, name: fields[0]}
	for _, f := range fields[1:] {
		at := strings.LastIndexByte(f, ' ')
		email, meaning, ok := strings.Cut(f[:max(at, 0)], " ")
		if quote := strings.LastIndexByte(f[:max(at, 0)], ' '); ok && quote > len(email) { // a quoted local part
			email, meaning = f[:quote], f[quote+1:at]
		}
		if !ok || !slices.Contains([]string{"hard", "soft", "delayed"}, meaning) {
			t.Errorf("%s/%s: bad label %q", file, n.name, f)
		}
		n.want = append(n.want, label{email: email, meaning: meaning, status: f[at+1:]})
	}
	header, body, _ := strings.Cut(rest, "\n\n")
	n.raw = strings.ReplaceAll(buildNotice(header, body), "\n", "\r\n")
	return n
}

// buildNotice returns the message of a record.
func buildNotice(header, body string) string {
	kind := "text/plain"
	if page, ok := strings.CutPrefix(body, "~~ html\n"); ok {
		kind, body = "text/html", page
	}
	parts := strings.Split(body, "\n~~ ")
	text := "Content-Type: " + kind + "; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n" + parts[0] + "\n"
	head := "Date: Fri, 20 Nov 2026 10:12:00 +0000\nTo: max@absender.example\nMIME-Version: 1.0\n" + header + "\n"
	if len(parts) == 1 {
		return head + text
	}
	var b strings.Builder
	b.WriteString(head + "Content-Type: multipart/report; report-type=delivery-status; boundary=cut\n\n--cut\n" + text)
	for _, part := range parts[1:] {
		name, content, _ := strings.Cut(part, "\n")
		media := map[string]string{"status": "message/delivery-status", "original": "text/rfc822-headers"}[name]
		b.WriteString("--cut\nContent-Type: " + media + "\n\n" + content + "\n")
	}
	b.WriteString("--cut--\n")
	return b.String()
}
