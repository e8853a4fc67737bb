package store

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Template is a message with variables, to be filled in when it is sent.
type Template struct {
	Seq       int64   `db:"seq"`
	AccountID int64   `db:"account_id"`
	ID        string  `db:"id"`
	Name      string  `db:"name"`
	Subject   string  `db:"subject"`
	HTML      string  `db:"html"`
	Text      *string `db:"text"` // nil: it is made from the html
	CreatedAt Time    `db:"created_at"`
	UpdatedAt Time    `db:"updated_at"`
}

const (
	templateWritten = `account_id, id, name, subject, html, text, created_at, updated_at`
	templateColumns = `seq, ` + templateWritten
	oneTemplate     = `SELECT ` + templateColumns + ` FROM templates WHERE account_id = $1 AND id = $2`
)

// CreateTemplate stores t, which carries AccountID, Name, Subject, HTML and
// Text, and returns it as stored. With once, the response is cached too.
func (s *Store) CreateTemplate(ctx context.Context, t Template, once *Once) (Template, error) {
	now := s.now()
	t.ID, t.CreatedAt, t.UpdatedAt = NewID("tmpl_", now), NewTime(now), NewTime(now)
	return transact(ctx, s, "create template", func(tx *sqlx.Tx) (_ Template, err error) {
		if t.Seq, err = insertRow(ctx, tx, "templates", templateWritten, t); err != nil {
			return t, err
		}
		return t, s.cacheResponse(ctx, tx, once, t.ID, t)
	})
}

// Template returns the account's template.
func (s *Store) Template(ctx context.Context, accountID int64, id string) (Template, error) {
	return readOne[Template](ctx, s, "template", oneTemplate, accountID, id)
}

// TemplatesNamed returns the account's templates with a name, newest first, at most two.
func (s *Store) TemplatesNamed(ctx context.Context, accountID int64, name string) ([]Template, error) {
	const q = `SELECT ` + templateColumns + ` FROM templates WHERE account_id = $1 AND name = $2 ORDER BY seq DESC LIMIT 2`
	return readAll[Template](ctx, s, "templates", q, accountID, name)
}

// ListTemplates returns a page of the account's templates, newest first. A page
// may hold fewer than the limit and yet not be the last: when the templates say
// so much that more would be too much to hold.
func (s *Store) ListTemplates(ctx context.Context, accountID int64, p Page) (List[Template], error) {
	const q = `SELECT ` + templateColumns + ` FROM templates WHERE account_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`
	scope := fmt.Sprintf("templates/%d", accountID)
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Template]{}, err
	}
	found, err := s.read.QueryxContext(ctx, q, accountID, before, p.Limit+1)
	if err != nil {
		return List[Template]{}, s.wrap(err, "list templates")
	}
	defer func() { _ = found.Close() }() // its error is that of found.Err
	var rows []Template
	for size := 0; size <= pageBytes && found.Next(); {
		var t Template
		if err := found.StructScan(&t); err != nil {
			return List[Template]{}, s.wrap(err, "list templates")
		}
		if size += t.textBytes(); size > pageBytes {
			p.Limit = max(1, len(rows)) // t is the first of the next page
		}
		rows = append(rows, t)
	}
	if err := found.Err(); err != nil {
		return List[Template]{}, s.wrap(err, "list templates")
	}
	return page(s, scope, p.Limit, rows, func(t Template) position { return position{Seq: t.Seq} }), nil
}

// textBytes returns how many bytes of text the template has.
func (t Template) textBytes() int {
	n := len(t.HTML)
	if t.Text != nil {
		n += len(*t.Text)
	}
	return n
}

// UpdateTemplate lets edit change the template and saves name, subject, html and
// text, unless edit fails. It returns ErrNotFound if the account has no template with this id.
func (s *Store) UpdateTemplate(ctx context.Context, accountID int64, id string, edit func(*Template) error) (Template, error) {
	const save = `UPDATE templates SET name = :name, subject = :subject, html = :html, text = :text, updated_at = :updated_at WHERE seq = :seq`
	return transact(ctx, s, "update template", func(tx *sqlx.Tx) (Template, error) {
		return editRow(ctx, s, tx, oneTemplate, []any{accountID, id}, func(t *Template) error {
			t.UpdatedAt = NewTime(s.now())
			return edit(t)
		}, save)
	})
}

// DeleteTemplate deletes the template permanently, and the cached response that
// reports it. It returns ErrNotFound if the account has no template with this id.
func (s *Store) DeleteTemplate(ctx context.Context, accountID int64, id string) error {
	return s.deleteRow(ctx, "template", "templates", accountID, id)
}
