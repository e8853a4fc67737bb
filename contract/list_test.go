package contract_test

import (
	"net/http"
	"testing"
)

// page has the list fields that the tests read.
type page struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
	HasMore bool    `json:"has_more"`
	Cursor  *string `json:"cursor"`
}

// lists reads lists page by page and tries their cursors on other lists.
func lists(t *testing.T, w *world) {
	for range 3 {
		w.newInbox(t)
		w.newTemplate(t)
		w.newContact(t)
		w.newSuppression(t)
		w.newDomain(t)
	}
	for range 2 {
		w.receive(t, w.inbox)
		send := w.call("sendMessage").at("/v1/inboxes/" + w.inbox.ID + "/messages") // each starts a thread
		w.send(t, send.saying(`{"to":"ana@example.org","subject":"Your code","text":"1"}`)).want(t, http.StatusCreated)
	}
	threads := w.call("listThreads").at("/v1/inboxes/" + w.inbox.ID + "/threads")
	for id, first := range map[string]call{
		"listInboxes": w.call("listInboxes"), "listKeys": w.call("listKeys"), "listDomains": w.call("listDomains"), "listApiKeys": w.call("listApiKeys"),
		"listMessages": w.call("listMessages"), "listMessages, q": w.call("listMessages").asking("q", "code"), "listThreads": threads,
		"listTemplates": w.call("listTemplates"), "listContacts": w.call("listContacts"),
		"listSuppressions": w.call("listSuppressions"),
	} {
		seen := map[string]bool{}
		c := first.asking("limit", "2")
		for {
			p := read[page](t, w.send(t, c).want(t, http.StatusOK))
			for _, item := range p.Data {
				if seen[item.ID] {
					t.Fatalf("%s: %s comes twice", id, item.ID)
				}
				seen[item.ID] = true
			}
			if p.HasMore != (p.Cursor != nil) || p.HasMore && len(p.Data) != 2 {
				t.Errorf("%s: a page of %d, has_more %v, cursor %v", id, len(p.Data), p.HasMore, p.Cursor)
			}
			if p.Cursor == nil {
				break
			}
			c = c.asking("cursor", *p.Cursor)
		}
		if len(seen) < 3 {
			t.Errorf("%s: %d items", id, len(seen))
		}
		elsewhere := w.call("listInboxes")
		if id == "listInboxes" {
			elsewhere = w.call("listKeys")
		}
		w.send(t, elsewhere.asking("cursor", c.query.Get("cursor"))).wantCode(t, http.StatusBadRequest, "invalid_request")
		w.send(t, first.asking("limit", "101").breaking()).wantCode(t, http.StatusBadRequest, "invalid_request")
	}
	w.send(t, w.call("listMessages").asking("inbox_id", "ibx_none")).wantCode(t, http.StatusNotFound, "not_found")
}
