package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// newContact is a contact that is ready to be created.
func newContact(accountID int64, email string) store.Contact {
	c := store.Contact{AccountID: accountID, Email: email, EmailFold: strings.ToLower(email)}
	c.Metadata.V, c.Tags.V = json.RawMessage(`{"n":1.50,"big":12345678901234567890}`), labels("source", "import")
	return c
}

// named is an input of a batch that sets the first name.
func named(email, name string) store.ContactInput {
	return store.ContactInput{Email: email, EmailFold: strings.ToLower(email), Edit: func(c *store.Contact) { c.FirstName = &name }}
}

// firstNames are the contacts of an account by their folded addresses.
func firstNames(t *testing.T, s *store.Store, accountID int64) map[string]string {
	t.Helper()
	l, err := s.ListContacts(t.Context(), accountID, "", store.Page{Limit: 5000})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, c := range l.Rows {
		names[c.EmailFold] = ""
		if c.FirstName != nil {
			names[c.EmailFold] = *c.FirstName
		}
	}
	return names
}

// TestBatchesAtTheSameTime name the same contacts in other orders: each is made
// once, and no batch fails.
func TestBatchesAtTheSameTime(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		const batches, contacts = 4, 250
		mine := storetest.Account(t, s).Seq
		counts := make([]store.ContactCounts, batches)
		var running sync.WaitGroup
		for b := range batches {
			running.Go(func() {
				var in []store.ContactInput
				for i := range contacts {
					in = append(in, named(fmt.Sprintf("c%d@example.org", (i*7+b*50)%contacts), fmt.Sprint(b)))
				}
				var err error
				if counts[b], err = s.UpsertContacts(t.Context(), mine, in, nil); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		var total store.ContactCounts
		for _, n := range counts {
			total.Created += n.Created
			total.Updated += n.Updated
		}
		if total != (store.ContactCounts{Created: contacts, Updated: (batches - 1) * contacts}) {
			t.Errorf("counted %+v", total)
		}
		if n := len(firstNames(t, s, mine)); n != contacts {
			t.Errorf("%d contacts", n)
		}
	})
}

// A contact that another call creates while a batch is about to is changed, and no input
// is lost.
func TestBatchChangesAContactCreatedMeanwhile(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.PostgreSQL) // on SQLite nothing comes between
	account := storetest.Account(t, s).Seq
	in := []store.ContactInput{named("a@example.org", "Ana"), named("b@example.org", "Ben")}
	edit, once := in[1].Edit, sync.Once{}
	in[1].Edit = func(c *store.Contact) {
		once.Do(func() {
			if _, err := s.CreateContact(t.Context(), newContact(account, "b@example.org"), nil); err != nil {
				t.Error(err)
			}
		})
		edit(c)
	}
	counts, err := s.UpsertContacts(t.Context(), account, in, nil)
	if want := (store.ContactCounts{Created: 1, Updated: 1}); err != nil || counts != want {
		t.Errorf("%+v, %v, want %+v", counts, err, want)
	}
	if names := firstNames(t, s, account); len(names) != 2 || names["b@example.org"] != "Ben" {
		t.Errorf("contacts: %v", names)
	}
}
