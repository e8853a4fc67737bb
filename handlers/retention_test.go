package handlers_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/maintenance"
	"github.com/postroom/postroom/internal/search"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// mark is a word that appears only in the content of messages.
const mark = "zq7vanishingzq7"

// trace is a word that appears only in what outlives the content: subject,
// addresses, Message-IDs.
const trace = "zq8lastingzq8"

// marked returns a message with the mark in every part of its content and an
// attachment of the given size.
func marked(size int) string {
	content := strings.Repeat(mark+"\r\n", 1+size/len(mark))
	return "Subject: " + trace + "\nFrom: " + trace + " <" + trace + "@out.example>\nMessage-ID: <" + store.NewLongID(trace, time.Now()) +
		"@out.example>\nReferences: <" + store.NewLongID(trace, time.Now()) + "@out.example>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n" +
		"Content-Type: multipart/alternative; boundary=c\n\n--c\n\nYour verification code is 482913. " + mark +
		"\nhttps://shop.example/confirm?token=" + mark + "\n\n--c\nContent-Type: text/html\n\n<p>" + mark +
		" <a href=\"https://shop.example/confirm?token=" + mark + "\">Confirm your address</a></p>\n--c--\n--b\n" +
		"Content-Type: text/plain; name=" + mark + ".txt\nContent-Disposition: attachment; filename=" + mark + ".txt\n" +
		"Content-Transfer-Encoding: base64\n\n" + lines(base64.StdEncoding.EncodeToString([]byte(content))) + "--b--"
}

// retained is a server with functions to run retention and to search rows and
// blobs.
type retained struct {
	*server
	db        *sqlx.DB
	blobs     string
	retention *maintenance.Retention
	sweeper   *maintenance.Sweeper
	indexer   *search.Indexer
}

// newFileClock returns a clock that starts now, like the times of new files.
func newFileClock() *storetest.Clock { return storetest.NewClock(time.Now()) }

func newRetained(t *testing.T, e storetest.Engine, blobs string, clock *storetest.Clock, opt storetest.Option) retained {
	t.Helper()
	cfg := storetest.Config(t, e, opt, storetest.WithNow(clock.Now))
	st := storetest.OpenConfig(t, cfg)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	driver := map[storetest.Engine]string{storetest.SQLite: "sqlite", storetest.PostgreSQL: "postgres"}[e]
	db, err := sqlx.Open(driver, cfg.Database)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	s := newServer(t, st, clock)
	s.database = cfg.Database
	return retained{
		server: s, db: db, blobs: blobs,
		retention: maintenance.NewRetention(maintenance.RetentionConfig{Store: st, Log: log}),
		sweeper:   maintenance.NewSweeper(maintenance.SweeperConfig{Store: st, Log: log}),
		indexer:   search.NewIndexer(search.IndexerConfig{Store: st, Now: clock.Now, Log: log}),
	}
}

// maintain runs the background work of the service.
func (s retained) maintain(t *testing.T) {
	t.Helper()
	_, err := s.retention.RunOnce(t.Context())
	_, sweepErr := s.sweeper.RunOnce(t.Context())
	must(t, errors.Join(err, sweepErr))
}

// remnantsIn returns the columns of a table that contain a text, once per row.
func (s retained) remnantsIn(t *testing.T, table, text string) (found []string) {
	t.Helper()
	rows, err := s.db.QueryxContext(t.Context(), `SELECT * FROM `+table)
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
	defer func() { _ = rows.Close() }() // rows.Err returns its error
	for rows.Next() {
		row := map[string]any{}
		must(t, rows.MapScan(row))
		for column, value := range row {
			if strings.Contains(strings.ToLower(fmt.Sprintf("%s", value)), strings.ToLower(text)) {
				found = append(found, table+"."+column)
			}
		}
	}
	must(t, rows.Err())
	return found
}

// remnants returns where a text occurs, ignoring case: columns of all tables,
// including those of indexes, and blobs.
func (s retained) remnants(t *testing.T, text string) (found []string) {
	t.Helper()
	for _, table := range s.tables(t) {
		found = append(found, s.remnantsIn(t, table, text)...)
	}
	err := fs.WalkDir(os.DirFS(s.blobs), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(s.blobs, name))
		if bytes.Contains(b, []byte(text)) || bytes.Contains(b, []byte(base64.StdEncoding.EncodeToString([]byte(text))[:16])) {
			found = append(found, "blob "+name)
		}
		return err
	})
	must(t, err)
	return found
}

// wantIn fails the test unless a text occurs in these places. Their names may
// have a suffix, and other places may have it too.
func (s retained) wantIn(t *testing.T, text string, places ...string) {
	t.Helper()
	found := strings.Join(s.remnants(t, text), "\n")
	for _, place := range places {
		if !strings.Contains(found, place) {
			t.Errorf("%s was never in %s: found in\n%s", text, place, found)
		}
	}
}

func (s retained) tables(t *testing.T) (names []string) {
	t.Helper()
	q := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`
	if s.store.Engine() == "postgresql" {
		q = `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`
	}
	if err := s.db.Select(&names, q); err != nil || len(names) < 10 {
		t.Fatalf("%d tables, %v", len(names), err)
	}
	return names
}

// count returns the number of rows about a message.
func (s retained) count(t *testing.T, table string, seq int64) (n int) {
	t.Helper()
	column := map[string]string{"messages": "seq"}[table]
	if column == "" {
		column = "message_seq"
	}
	must(t, s.db.Get(&n, fmt.Sprintf(`SELECT count(*) FROM %s WHERE %s = %d`, table, column, seq)))
	return n
}

// The API shows the rest of a message whose content is deleted, and some
// operations still work.
func TestExpiredMessages(t *testing.T) {
	t.Parallel()
	eachRetained(t, func(t *testing.T, s retained) {
		in := s.newInbox(t, func(in *store.Inbox) { in.RetentionDays = 2 })
		m := s.receive(t, in, marked(100))
		attachment := "/v1/messages/" + m.ID + "/attachments/" + m.Content.Attachments.V[0].ID
		before := s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK)
		before.wantAt(t, "expired", "false")
		before.wantAt(t, "extracted.otp", `"482913"`)
		s.clock.Add(2*24*time.Hour - time.Minute)
		s.maintain(t)
		s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").wantSame(t, before)
		links := []string{
			s.rawLink(t, m), s.linked(t, s.do(t, http.MethodGet, attachment, "").want(t, http.StatusOK).str(t, "download_url")),
		}

		s.clock.Add(time.Minute)
		for _, path := range []string{"/v1/messages/" + m.ID, "/v1/inboxes/" + in.ID + "/messages?include=text"} { // before the work has run
			if now := s.do(t, http.MethodGet, path, "").want(t, http.StatusOK); strings.Contains(string(now.body), mark) {
				t.Errorf("%s still shows the content: %s", path, now.body)
			}
		}
		s.maintain(t)
		after := s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK)
		after.wantAt(t, "expired", "true")
		for _, gone := range []string{"text", "html", "extracted_text", "extracted", "snippet", "auth", "headers"} {
			after.wantAt(t, gone, "null")
		}
		after.wantAt(t, "attachments", "[]")
		for _, kept := range []string{
			"id", "thread_id", "from", "to", "subject", "status", "received_at", "created_at", "size", "rfc_message_id", "direction",
		} {
			if fmt.Sprint(after.at(t, kept)) != fmt.Sprint(before.at(t, kept)) {
				t.Errorf("%s is %v, was %v", kept, after.at(t, kept), before.at(t, kept))
			}
		}
		s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages", "").want(t, http.StatusOK).wantAt(t, "data.0.expired", "true")
		s.do(t, http.MethodGet, "/v1/messages/"+m.ID+"/raw", "").wantError(t, http.StatusGone, "message_expired")
		s.do(t, http.MethodGet, attachment, "").wantError(t, http.StatusGone, "message_expired")
		s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/forward", `{"to":"bob@out.example"}`).wantError(t, http.StatusGone, "message_expired")
		for _, link := range links { // created a minute ago
			s.do(t, http.MethodGet, link, "", as("")).wantError(t, http.StatusNotFound, "not_found")
		}
		reply := s.do(t, http.MethodPost, "/v1/messages/"+m.ID+"/reply", `{"text":"Thanks."}`).want(t, http.StatusCreated)
		if reply.str(t, "thread_id") != after.str(t, "thread_id") {
			t.Error("the reply is in another thread")
		}
		if s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?timeout=1&has=code&since=2026-09-01T00:00:00Z", "").
			want(t, http.StatusOK).at(t, "message") != nil {
			t.Error("a wait returned a message whose code was deleted")
		}
	})
}

// C15: no trace remains of deleted content and, 35 days later, of the record.
func TestRetentionLeavesNothing(t *testing.T) {
	t.Parallel()
	eachRetained(t, func(t *testing.T, s retained) {
		const days = 3
		in := s.newInbox(t, func(in *store.Inbox) { in.RetentionDays = days })
		expiring := s.fill(t, in)
		orphan, _, err := s.store.PutBlob(t.Context(), strings.NewReader(mark), int64(len(mark)))
		must(t, err)
		s.wantIn(t, mark, "contents.raw", "contents.body", "contents.extracted", "contents.attachments", "idempotency.body", "blob "+orphan,
			"draft_contents.text", "search_index")
		s.wantIn(t, trace, "messages.subject", "messages.addresses", "messages.from_email", "messages.header_id", "messages.refs",
			"recipients.email", "threads.subject", "threads.participants", "thread_references.header_id", "drafts.addresses")

		s.clock.Add(days*24*time.Hour - time.Hour)
		s.maintain(t)
		if found := s.remnants(t, mark); len(found) == 0 {
			t.Fatal("the content was deleted an hour early")
		}
		s.clock.Add(time.Hour)
		s.maintain(t)
		if found := s.remnants(t, mark); len(found) != 0 {
			t.Errorf("after %d days the content is still in\n%s", days, strings.Join(found, "\n"))
		}
		for _, m := range expiring {
			s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK).wantAt(t, "expired", "true")
			s.do(t, http.MethodGet, "/v1/messages/"+m.ID+"/raw", "").wantError(t, http.StatusGone, "message_expired")
		}

		s.clock.Add(store.RecordTTL - time.Hour)
		s.maintain(t)
		if found := s.remnants(t, trace); len(found) == 0 {
			t.Error("the records were deleted an hour early")
		}
		s.clock.Add(time.Hour)
		s.maintain(t)
		if found := s.remnants(t, trace); len(found) != 0 {
			t.Errorf("35 days later the records are still in\n%s", strings.Join(found, "\n"))
		}
		for _, m := range expiring {
			s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").wantError(t, http.StatusNotFound, "not_found")
			for _, table := range []string{"messages", "contents", "recipients", "events"} {
				if n := s.count(t, table, m.Seq); n != 0 {
					t.Errorf("%s: %d rows in %s", m.ID, n, table)
				}
			}
		}
	})
}

// fill stores marked messages of every kind in an inbox and returns them.
func (s retained) fill(t *testing.T, in store.Inbox) (all []store.Message) {
	t.Helper()
	for _, size := range []int{0, 32 << 10, store.RawInRow} {
		all = append(all, s.receive(t, in, marked(size)))
	}
	forward := `{"to":"` + trace + `@out.example","text":"` + mark + `"}`
	send := `{"to":"` + trace + `@out.example","subject":"` + trace + `","text":"` + mark + `","html":"<p>` + mark + `</p>","attachments":[{"filename":"` +
		mark + `.txt","content":"` + base64.StdEncoding.EncodeToString([]byte(mark)) + `"}]}`
	for path, body := range map[string]string{
		"/v1/inboxes/" + in.ID + "/messages":     send,
		"/v1/messages/" + all[0].ID + "/reply":   `{"text":"` + mark + `"}`,
		"/v1/messages/" + all[2].ID + "/forward": forward,
		"/v1/messages/" + all[0].ID + "/forward": forward,
	} {
		res := s.do(t, http.MethodPost, path, body, with(idempotencyKey, path)).want(t, http.StatusCreated)
		m, err := s.store.Message(t.Context(), s.account, res.str(t, "id"))
		must(t, err)
		all = append(all, m)
	}
	s.fillDrafts(t, in)
	if n, err := s.indexer.RunOnce(t.Context()); err != nil || n < len(all) {
		t.Fatalf("%d messages indexed, %v", n, err)
	}
	for {
		claimed, err := s.store.ClaimRecipients(t.Context(), 10, time.Minute, nil)
		must(t, err)
		if len(claimed) == 0 {
			return all
		}
		for _, c := range claimed {
			err := s.store.RecordAttempt(t.Context(), store.Attempt{
				RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: store.RecipientDelivered,
				Response: "250 OK", Signature: "DKIM-Signature: " + mark + "\r\n",
			})
			must(t, err)
		}
	}
}

// fillDrafts stores marked drafts of every state in an inbox.
func (s retained) fillDrafts(t *testing.T, in store.Inbox) {
	t.Helper()
	s.do(t, http.MethodPatch, "/v1/inboxes/"+in.ID, `{"send_policy":"approval"}`).want(t, http.StatusOK)
	for _, size := range []int{0, 0, store.RawInRow} {
		file := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(mark, 1+size/len(mark))))
		draft := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages",
			`{"to":"`+trace+`@out.example","subject":"`+trace+`","text":"`+mark+`","headers":{"X-Note":"`+mark+`"},
			"attachments":[{"filename":"`+mark+`.txt","content":"`+file+`"}]}`, with(idempotencyKey, fmt.Sprint("draft ", count.Add(1)))).
			want(t, http.StatusAccepted).str(t, "id")
		switch size {
		case 0:
			s.do(t, http.MethodPost, "/v1/drafts/"+draft+"/reject", `{"reason":"Not now."}`).want(t, http.StatusOK)
		default:
			s.do(t, http.MethodPost, "/v1/drafts/"+draft+"/send", "").want(t, http.StatusCreated)
		}
	}
	s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"`+trace+`@out.example","subject":"`+trace+`","text":"`+mark+`"}`).
		want(t, http.StatusAccepted)
}

// A deleted inbox loses everything at once, but its address stays taken (C15).
func TestDeletedInboxLeavesNothing(t *testing.T) {
	t.Parallel()
	eachRetained(t, func(t *testing.T, s retained) {
		in, other := s.newInbox(t), s.newInbox(t)
		s.fill(t, in)
		kept := s.receive(t, other, "Subject: Something else\n\nHello.")
		s.do(t, http.MethodDelete, "/v1/inboxes/"+in.ID, "").want(t, http.StatusOK)
		s.maintain(t)
		for _, text := range []string{mark, trace} {
			if found := s.remnants(t, text); len(found) != 0 {
				t.Errorf("%q is still in\n%s", text, strings.Join(found, "\n"))
			}
		}
		s.do(t, http.MethodGet, "/v1/messages/"+kept.ID, "").want(t, http.StatusOK).wantAt(t, "expired", "false")
		s.do(t, http.MethodPost, "/v1/inboxes", `{"name":"`+in.Name+`"}`).wantError(t, http.StatusConflict, "address_taken name")
	})
}

// An inbox past its expires_at stays readable. Its messages expire as usual.
func TestExpiredInboxKeepsItsMail(t *testing.T) {
	t.Parallel()
	eachRetained(t, func(t *testing.T, s retained) {
		in := s.newInbox(t, func(in *store.Inbox) {
			expires := store.NewTime(s.clock.Now().Add(time.Hour))
			in.RetentionDays, in.ExpiresAt = 1, &expires
		})
		m := s.receive(t, in, "Subject: Hi")
		s.clock.Add(2 * time.Hour)
		s.maintain(t)
		s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID, "").want(t, http.StatusOK).wantAt(t, "status", `"expired"`)
		s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK).wantAt(t, "expired", "false")
		if _, err := s.store.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in)}, nil); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("mail to it: %v, want ErrNotFound", err)
		}
		s.clock.Add(22 * time.Hour)
		s.maintain(t)
		s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK).wantAt(t, "expired", "true")
		s.do(t, http.MethodPatch, "/v1/inboxes/"+in.ID, `{"expires_at":null,"retention_days":30}`).want(t, http.StatusOK).wantAt(t, "status", `"active"`)
		s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK).wantAt(t, "expired", "true")
	})
}

// Without our own links, only the bucket's links remain, if it has any. A
// folder has none.
func TestFilesOff(t *testing.T) {
	s := serve(t, func(c *handlers.Config) { c.NoFiles = true })
	m := s.receive(t, s.newInbox(t), marked(100))
	on := newServer(t, s.store, s.clock)
	on.account = s.account
	on.key = on.newKey(t)
	link := on.rawLink(t, m)
	on.do(t, http.MethodGet, link, "", as("")).want(t, http.StatusOK)
	for _, path := range []string{
		"/v1/messages/" + m.ID + "/raw", "/v1/messages/" + m.ID + "/attachments/" + m.Content.Attachments.V[0].ID, link,
		"/v1/files/x",
	} {
		s.do(t, http.MethodGet, path, "").wantError(t, http.StatusNotFound, "not_found")
	}
	s.do(t, http.MethodGet, "/v1/messages/"+m.ID, "").want(t, http.StatusOK).wantAt(t, "attachments.0.size", fmt.Sprint(m.Content.Attachments.V[0].Size))
}
