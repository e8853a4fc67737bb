package faults_test

import (
	"fmt"
	"slices"
	"strings"
)

// findMarks finds what clients put into messages and calls: ids, durable-000001-end,
// and idempotency keys, once-000001-end.
func findMarks(text string) (found []string) {
	const behind = len("-000001-end")
	for _, prefix := range []string{"durable", "once"} {
		for rest := text; ; {
			at := strings.Index(rest, prefix+"-")
			if at < 0 {
				break
			}
			end := at + len(prefix) + behind
			if end <= len(rest) && strings.HasSuffix(rest[:end], "-end") {
				found = append(found, rest[at:end])
			}
			rest = rest[at+1:]
		}
	}
	return found
}

// durability follows a trace of the program. Whenever the program begins to send a
// response that promises something, it checks that what it promises is durable.
type durability struct {
	addrs []string // addresses that the program listens on, host:port
	rows  database
	blobs *blobTrace

	asked    map[string][]string // marks received, by connection
	promised map[string]int      // number of promises, by status
	faults   []string
}

// database follows what is written to SQLite or sent to PostgreSQL.
type database interface {
	// take processes an event and returns the marks that are now written for
	// the first time.
	take(event) []string
	// kept says why one transaction has not made all of the marks durable. It
	// returns an empty string when it has.
	kept(marks []string) string
}

func newDurability(rows database, addrs ...string) *durability {
	return &durability{
		addrs: addrs, rows: rows, blobs: newBlobTrace(), asked: map[string][]string{}, promised: map[string]int{},
	}
}

// take is for readTrace.
func (d *durability) take(e event) {
	switch {
	case !d.client(e.file):
		d.blobs.take(e)
		for _, m := range d.rows.take(e) {
			if why := d.blobs.missing(m); why != "" {
				d.faults = append(d.faults, fmt.Sprintf("the row of %s is written, and %s", m, why))
			}
		}
	case e.name == "read" && e.end:
		d.asked[e.file] = append(d.asked[e.file], findMarks(e.text)...)
	case e.name == "write" && !e.end:
		d.response(e.file, e.text)
	}
}

// client says whether file is the connection of a client.
func (d *durability) client(file string) bool {
	return slices.ContainsFunc(d.addrs, func(door string) bool { return strings.HasPrefix(file, "TCP:["+door+"->") })
}

// response checks what a client receives. It covers everything that the client sent before.
func (d *durability) response(connection, text string) {
	marks := d.asked[connection]
	if len(marks) == 0 {
		return // EHLO, or a call that creates nothing
	}
	delete(d.asked, connection)
	status, _, _ := strings.Cut(strings.TrimPrefix(text, "HTTP/1.1 "), " ")
	d.promised[status]++
	switch why := d.rows.kept(marks); {
	case status != "250" && status != "201":
		d.faults = append(d.faults, fmt.Sprintf("%v got %.80q", marks, text))
	case why != "":
		d.faults = append(d.faults, fmt.Sprintf("%v got %s, and %s", marks, status, why))
	}
}

// transaction is one transaction that is being written, or was written.
type transaction struct {
	number int // of the commit; 0 before
}

// marks maps each mark to the transaction that wrote it first.
type marks map[string]*transaction

// add records that tx writes text, and returns the marks that are new.
func (m marks) add(text string, tx *transaction) (fresh []string) {
	for _, found := range findMarks(text) {
		if m[found] == nil {
			m[found] = tx
			fresh = append(fresh, found)
		}
	}
	return fresh
}

// one returns the transaction that wrote all of the marks, or why there is none.
func (m marks) one(all []string) (*transaction, string) {
	for _, one := range all {
		switch {
		case m[one] == nil:
			return nil, one + " was not written"
		case m[one] != m[all[0]]:
			return nil, "they were written by two transactions"
		}
	}
	return m[all[0]], ""
}

func isSync(name string) bool { return name == "fsync" || name == "fdatasync" }
