package faults_test

import "strings"

// pgTrace follows the connections to PostgreSQL. A transaction is durable when the
// server has confirmed COMMIT: with synchronous_commit on, it does so after the fsync
// of its log.
type pgTrace struct {
	marks     marks
	open      map[string]*transaction // by connection
	asked     map[string]bool         // COMMIT was sent
	committed int
	weakened  []string // statements that may weaken a commit
}

// commit is the command, and the confirmation of the server.
const commit = `COMMIT\0`

func newPGTrace() *pgTrace {
	return &pgTrace{marks: marks{}, open: map[string]*transaction{}, asked: map[string]bool{}}
}

func (p *pgTrace) take(e event) (fresh []string) {
	socket := strings.HasPrefix(e.file, "UNIX") || strings.HasPrefix(e.file, "TCP")
	switch {
	case !socket:
	case e.name == "write" && !e.end:
		return p.said(e.file, e.text)
	case e.name == "read" && e.end && p.asked[e.file] && strings.Contains(e.text, commit):
		p.committed++
		p.open[e.file].number = p.committed
		p.end(e.file)
	case e.name == "read" && e.end && p.asked[e.file] && e.text != "":
		p.end(e.file) // it failed
	}
	return nil
}

// said inspects what the program sends to the server. Queries outside of a
// transaction do not affect its promises.
func (p *pgTrace) said(connection, text string) (fresh []string) {
	if strings.Contains(text, "synchronous_commit") {
		p.weakened = append(p.weakened, text)
	}
	switch {
	case strings.HasPrefix(text, "Q") && strings.Contains(text, "BEGIN"):
		p.open[connection] = &transaction{}
	case p.open[connection] == nil:
	case strings.Contains(text, "ROLLBACK"):
		p.end(connection)
	case strings.Contains(text, commit):
		p.asked[connection] = true
	default:
		fresh = p.marks.add(text, p.open[connection])
	}
	return fresh
}

func (p *pgTrace) end(connection string) {
	delete(p.open, connection)
	delete(p.asked, connection)
}

func (p *pgTrace) kept(marks []string) string {
	tx, why := p.marks.one(marks)
	switch {
	case why != "":
		return why
	case tx.number == 0:
		return "the server has not confirmed the COMMIT"
	}
	return ""
}
