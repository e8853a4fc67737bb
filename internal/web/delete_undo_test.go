package web_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
)

// messagesLeft returns how many messages the account has.
func (s *site) messagesLeft(t *testing.T) int {
	t.Helper()
	l, err := s.api.ListMessages(s.asUser(t), gen.ListMessagesParams{})
	must(t, err)
	return len(l.Data)
}

// The deletion of messages can be undone. It happens when the user leaves the page.
func TestBrowserUndoesTheDeletionOfMessages(t *testing.T) {
	s := openSQLite(t, options{undo: time.Hour})
	in := s.newInbox(t, "undo", gen.SendPolicyOpen)
	for range 3 {
		s.put(t, in, codeMail)
	}
	m := s.put(t, in, "From: Ann <ann@out.example>\r\nTo: OWN\r\nSubject: Keep me\r\n\r\nHello\r\n")
	b := s.browse(t)
	b.open("/messages")
	deleteTwo := func() {
		t.Helper()
		b.do(chromedp.Click(chromedp.CSS(".messages li:nth-child(2) .pick input")), chromedp.Click(chromedp.CSS(".messages li:nth-child(3) .pick input")))
		b.do(chromedp.Click(chromedp.CSS(".pick-bar summary")), chromedp.Click(chromedp.CSS("#many button"), chromedp.NodeVisible))
		b.waits(`document.querySelector('.toast')?.textContent.includes('2 messages deleted') && document.querySelectorAll('.messages li:not([hidden])').length === 2`)
	}
	deleteTwo()
	b.picture("delete-undo")
	b.sound()
	b.do(chromedp.Click(chromedp.CSS(".toast button")))
	b.waits(`!document.querySelector('.toast') && document.querySelectorAll('.messages li:not([hidden])').length === 4`)
	b.open("/messages")
	if n := s.messagesLeft(t); n != 4 {
		t.Fatalf("%d messages are left after the undo, want 4", n)
	}
	deleteTwo()
	b.click(`.menu a[href="/inboxes"]`)
	b.shows("2 messages deleted.")
	if n := s.messagesLeft(t); n != 2 {
		t.Errorf("%d messages are left, want 2", n)
	}
	b.open("/messages/" + m.ID)
	b.do(chromedp.Click(chromedp.CSS(".under summary")), chromedp.Click(chromedp.CSS(".under details form button"), chromedp.NodeVisible))
	b.waits(`document.querySelector('.toast') && document.querySelector('.letter').hidden`)
	b.do(chromedp.Click(chromedp.CSS(".toast button")))
	b.waits(`!document.querySelector('.letter').hidden`)
	if n := s.messagesLeft(t); n != 2 {
		t.Errorf("%d messages are left after the undo, want 2", n)
	}
}
