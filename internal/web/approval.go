package web

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/approval"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mailhtml"
	"github.com/postroom/postroom/store"
)

// draftEvents are the events that change the approval queue.
var draftEvents = []gen.EventType{gen.EventTypeDraftPending, gen.EventTypeDraftSent, gen.EventTypeDraftRejected}

type approvalsView struct {
	Drafts    []gen.Draft
	Undo      undoable
	Status    string // pending, sent or rejected
	Addresses map[string]string
	paging
	Live string
}

func (d *Dashboard) approvals(p *page) error {
	v := approvalsView{Status: p.r.URL.Query().Get("status"), Addresses: map[string]string{}}
	if v.Status == "" {
		v.Status = string(gen.DraftStatusPending)
	}
	list, err := d.api.ListDrafts(p.ctx(), gen.ListDraftsParams{
		Status: gen.NewOptDraftStatus(gen.DraftStatus(v.Status)), Limit: gen.NewOptInt(listed), Cursor: p.cursor(),
	})
	if err != nil {
		return err
	}
	v.Drafts, v.paging = list.Data, p.paging(list.Cursor)
	if err := p.addInboxes(v.Addresses, textsOf(v.Drafts, func(dr gen.Draft) string { return dr.InboxID })...); err != nil {
		return err
	}
	if v.Undo, err = d.undoable(p); err != nil {
		return err
	}
	v.Live = v.live("", draftEvents...)
	return p.show("approvals", v)
}

// undoable is the draft that was just approved, while that can be undone: its id and
// the seconds that are left, or nothing.
type undoable struct {
	ID   string
	Left int
}

// undoable returns the draft that the query names as just approved.
func (d *Dashboard) undoable(p *page) (undoable, error) {
	id := p.r.URL.Query().Get("undo")
	if id == "" {
		return undoable{}, nil
	}
	dr, err := d.api.GetDraft(p.ctx(), gen.GetDraftParams{DraftID: id})
	if _, refused := refusal(err); refused {
		return undoable{}, nil // no such draft
	}
	if err != nil {
		return undoable{}, err
	}
	left := dr.DecidedAt.Or(time.Time{}).Add(d.cfg.Undo).Sub(d.now())
	if dr.Status != string(gen.DraftStatusSent) || left <= 0 {
		return undoable{}, nil
	}
	return undoable{id, int(math.Ceil(left.Seconds()))}, nil
}

// approvalView is the page on which a user approves or rejects a draft.
type approvalView struct {
	Draft *gen.Draft
	Inbox *gen.Inbox
	Frame *frame
	Here  string
	// Changes lists what has changed since the user last saw the draft. Conflict means
	// that another user made them, Saved that this one just did.
	Conflict, Saved bool
	Changes         []change
	Undo            undoable // the draft that was decided before this one
	Reason          string   // as submitted
	Problem         problem
	You             string
	// AllText is the text of the HTML, including text that its styles hide.
	AllText string
	// Source is the message that the draft replies to or forwards, if it still
	// exists.
	Source *gen.Message
	// Previous and Next are the ids of the neighbours in the approval queue, or
	// empty.
	Previous, Next string
	// Names maps the ids of the account's keys and users to their names.
	Names map[string]string
}

// Alarming returns the warnings about content that is hidden from readers or may
// mislead them.
func (v approvalView) Alarming() []gen.DraftWarning {
	return slices.DeleteFunc(slices.Clone(v.Draft.Warnings), func(w gen.DraftWarning) bool { return isLink(w) })
}

// Links returns the warnings that name a linked address.
func (v approvalView) Links() []gen.DraftWarning {
	return slices.DeleteFunc(slices.Clone(v.Draft.Warnings), func(w gen.DraftWarning) bool { return !isLink(w) })
}

func isLink(w gen.DraftWarning) bool { return w.Code == "link" }

// Pending reports whether the draft still awaits a decision.
func (v approvalView) Pending() bool { return v.Draft.Status == string(gen.DraftStatusPending) }

// viewOf returns the page of a draft, without what only signed-in users see.
func (d *Dashboard) viewOf(p *page, dr *gen.Draft, remote bool) (approvalView, error) {
	in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: dr.InboxID})
	if err != nil {
		return approvalView{}, err
	}
	source := draftSource(dr)
	v := approvalView{Draft: dr, Inbox: in, Frame: p.frameOf(source, remote), Here: "/approvals/" + dr.ID}
	if v.Frame != nil {
		v.Frame.Height, v.AllText = p.wholeHeight(source), mailhtml.AllText(source.HTML)
	}
	if id, ok := dr.SourceMessageID.Get(); ok {
		if v.Source, err = d.getMessage(p, id); isMissing(err) {
			v.Source, err = nil, nil // deleted since
		}
	}
	return v, err
}

func (d *Dashboard) approvalView(p *page) (approvalView, error) {
	dr, err := d.draft(p)
	if err != nil {
		return approvalView{}, err
	}
	v, err := d.viewOf(p, dr, p.asksRemote(draftSource(dr)))
	if err != nil {
		return v, err
	}
	v.You = p.user.ID
	if v.Undo, err = d.undoable(p); err != nil {
		return v, err
	}
	if v.Pending() {
		if v.Previous, v.Next, err = d.neighbours(p, dr.ID); err != nil {
			return approvalView{}, err
		}
	}
	v.Names, err = d.callers(p)
	return v, err
}

// neighbours returns the pending drafts before and after a draft among the newest
// 100.
func (d *Dashboard) neighbours(p *page, id string) (previous, next string, err error) {
	l, err := d.api.ListDrafts(p.ctx(), gen.ListDraftsParams{
		Status: gen.NewOptDraftStatus(gen.DraftStatusPending), Limit: gen.NewOptInt(100),
	})
	if err != nil {
		return "", "", err
	}
	i := slices.IndexFunc(l.Data, func(dr gen.Draft) bool { return dr.ID == id })
	if i > 0 {
		previous = l.Data[i-1].ID
	}
	if i >= 0 && i+1 < len(l.Data) {
		next = l.Data[i+1].ID
	}
	return previous, next, nil
}

// approveMany sends the selected drafts, each only in the version that the list
// showed. The values of the form are the id and the version.
func (d *Dashboard) approveMany(p *page) error {
	approved, refused := 0, []string{}
	for _, selected := range p.form["draft"] {
		id, text, _ := strings.Cut(selected, ":")
		version, err := strconv.Atoi(text)
		if err != nil {
			return errForm
		}
		_, err = d.api.SendDraft(p.ctx(), gen.NewOptDraftSend(gen.DraftSend{Version: gen.NewOptInt(version)}), gen.SendDraftParams{DraftID: id})
		pr, known := refusal(err)
		switch {
		case err == nil:
			approved++
		case known:
			refused = append(refused, pr.Message)
		default:
			return err
		}
	}
	switch {
	case len(p.form["draft"]) == 0:
		return p.failed("/approvals", "Select at least one draft.")
	case len(refused) > 0:
		return p.failed("/approvals", fmt.Sprintf("%d approved, %d not: %s", approved, len(refused), refused[0]))
	}
	return p.done("/approvals", fmt.Sprintf("%d approved and queued for delivery.", approved))
}

// draft returns the draft whose id is in the path.
func (d *Dashboard) draft(p *page) (*gen.Draft, error) {
	return d.api.GetDraft(p.ctx(), gen.GetDraftParams{DraftID: p.r.PathValue("mail")})
}

func (d *Dashboard) draftFrame(p *page) error {
	dr, err := d.draft(p)
	if err != nil {
		return err
	}
	return p.showFrame(draftSource(dr))
}

// approve sends the draft only if it is still the version that the user saw.
func (d *Dashboard) approve(p *page) error {
	version, err := strconv.Atoi(p.form.Get("version"))
	if err != nil {
		return errForm
	}
	return d.approveVersion(p, version)
}

// approveVersion sends this version of the draft and goes on to the next one.
func (d *Dashboard) approveVersion(p *page, version int) error {
	id := p.r.PathValue("mail")
	next, err := d.afterwards(p, id)
	if err != nil {
		return err
	}
	m, err := d.api.SendDraft(p.ctx(), gen.NewOptDraftSend(gen.DraftSend{Version: gen.NewOptInt(version)}), gen.SendDraftParams{DraftID: id})
	if err != nil {
		return again(err, func(pr problem) error { return d.undecided(p, pr, "") })
	}
	return p.done(next+"?undo="+url.QueryEscape(id), "Approved: “"+shortened(m.Subject, 60)+"” is queued for delivery.")
}

// afterwards returns the page that follows a decision about a draft: that of the next
// pending one, or the queue.
func (d *Dashboard) afterwards(p *page, id string) (string, error) {
	previous, next, err := d.neighbours(p, id)
	if one := cmp.Or(next, previous); one != "" {
		return approvalsPath + "/" + one, err
	}
	return approvalsPath, err
}

// undo makes an approved draft pending again.
func (d *Dashboard) undo(p *page) error {
	path := "/approvals/" + url.PathEscape(p.r.PathValue("mail"))
	_, err := d.api.UndoDraft(p.ctx(), gen.UndoDraftParams{DraftID: p.r.PathValue("mail")})
	return p.result(err, path, path, "Approval undone. Nothing was sent.")
}

func (d *Dashboard) reject(p *page) error {
	reason, id := p.field("reason"), p.r.PathValue("mail")
	next, err := d.afterwards(p, id)
	if err != nil {
		return err
	}
	dr, err := d.api.RejectDraft(p.ctx(), gen.NewOptDraftReject(gen.DraftReject{Reason: optional(reason)}), gen.RejectDraftParams{DraftID: id})
	if err != nil {
		return again(err, func(pr problem) error { return d.undecided(p, pr, reason) })
	}
	return p.done(next, "Rejected: “"+shortened(dr.Subject, 60)+"” will not be sent.")
}

// undecided shows the draft's current version with the reason why the decision
// failed.
func (d *Dashboard) undecided(p *page, pr problem, reason string) error {
	v, err := d.approvalView(p)
	if err != nil {
		return err
	}
	v.Problem, v.Reason = pr, reason
	if v.Conflict = pr.code == string(gen.ErrorCodeDraftChanged); v.Conflict {
		v.Changes = changesSince(p.form, v.Draft)
	}
	return p.showStatus(pr.status, "approval", v)
}

// editView is the page on which a user edits a draft.
type editView struct {
	Draft               *gen.Draft
	Subject, Text, HTML string
	Version             int
	// Undecided is one of the values of endings, or "" to keep what happens if nobody
	// decides.
	Undecided string
	Changes   []change
	Problem   problem
}

func (d *Dashboard) editDraftForm(p *page) error {
	dr, err := d.draft(p)
	if err != nil {
		return err
	}
	return p.show("draft-edit", editView{Draft: dr, Subject: dr.Subject, Text: dr.Text.Or(""), HTML: dr.HTML.Or(""), Version: dr.Version})
}

// editDraft saves an edited draft. If another user has changed it in the
// meantime, the page shows both versions.
func (d *Dashboard) editDraft(p *page) error {
	dr, err := d.draft(p)
	if err != nil {
		return err
	}
	v := editView{
		Draft: dr, Subject: p.field("subject"), Text: unixLines(p.form.Get("text")), HTML: unixLines(p.form.Get("html")),
		Version: dr.Version, Undecided: p.form.Get("undecided"),
	}
	if p.form.Get("version") != strconv.Itoa(dr.Version) {
		v.Problem = problem{Message: "Another user edited this draft. Review their changes, then save again to keep yours."}
		v.Changes = changesSince(p.form, dr)
		return p.showStatus(http.StatusConflict, "draft-edit", v)
	}
	req := gen.DraftUpdate{Subject: gen.NewOptString(v.Subject), Version: gen.NewOptInt(dr.Version)}
	if v.Text != unixLines(dr.Text.Or("")) {
		req.Text = gen.OptNilString{Value: v.Text, Set: true, Null: v.Text == ""}
	}
	if v.HTML != unixLines(dr.HTML.Or("")) {
		req.HTML = gen.OptNilString{Value: v.HTML, Set: true, Null: v.HTML == ""}
	}
	if err := v.end(&req); err != nil {
		return err
	}
	saved, err := d.api.UpdateDraft(p.ctx(), &req, gen.UpdateDraftParams{DraftID: dr.ID})
	if err != nil {
		return again(err, func(pr problem) error {
			v.Problem = pr
			return p.showStatus(pr.status, "draft-edit", v)
		})
	}
	if p.form.Get("approve") != "" {
		return d.approveVersion(p, saved.Version)
	}
	shown, err := d.approvalView(p)
	if err != nil {
		return err
	}
	shown.Saved, shown.Changes = true, changesSince(p.form, saved)
	return p.show("approval", shown)
}

// end adds to a request when the draft stops waiting, and what happens then.
func (v editView) end(req *gen.DraftUpdate) error {
	then, in, timed := strings.Cut(v.Undecided, " ")
	switch {
	case v.Undecided == "":
	case timed:
		seconds, err := strconv.Atoi(in)
		if err != nil {
			return errForm
		}
		req.ExpiresIn, req.OnExpiry = gen.NewOptNilInt(seconds), gen.NewOptDraftOnExpiry(gen.DraftOnExpiry(then))
	default:
		req.ExpiresIn = gen.OptNilInt{Set: true, Null: true}
	}
	return nil
}

// endings are what the form offers if nobody decides: what happens, and after how many
// seconds.
var endings = []struct{ Value, Title string }{
	{"reject 3600", "Reject after 1 hour"}, {"reject 86400", "Reject after 1 day"}, {"reject 604800", "Reject after 7 days"},
	{"send 3600", "Send after 1 hour"}, {"send 86400", "Send after 1 day"}, {"send 604800", "Send after 7 days"},
}

// Endings returns the choices of the form.
func (editView) Endings() []struct{ Value, Title string } { return endings }

// unixLines replaces the CRLF that browsers send with LF.
func unixLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// errApproveLink is the response for links to drafts that do not work.
var errApproveLink = &failure{
	http.StatusNotFound, "This link does not work",
	"A link to a draft works for 24 hours, for the person it was sent to. Sign in to see all drafts.",
}

// linkView is the page that a link opens.
type linkView struct {
	approvalView
	// Outdated means that the link is for an earlier version of the draft.
	Outdated bool
	Done     string // what the approver just did: approved or rejected
}

// Open reports whether the page has buttons.
func (v linkView) Open() bool { return v.Pending() && !v.Outdated && !v.Draft.Expired }

// linked returns what a link shows. From then on, calls of the page run as its
// approver.
func (d *Dashboard) linked(p *page) (linkView, approval.Link, error) {
	if d.cfg.Approvals == nil {
		return linkView{}, approval.Link{}, errNoPage
	}
	token := p.r.PathValue("token")
	link, ok := d.cfg.Approvals.Read(token, d.now())
	if !ok {
		return linkView{}, link, errApproveLink
	}
	number := fnv.New32a()
	_, _ = number.Write([]byte(link.Approver)) // a hash never returns an error
	p.r = p.r.WithContext(httpapi.AsPerson(p.ctx(), httpapi.Person{
		// Each approver has rate limits of their own, beside those of users.
		Seq: 1<<40 + int64(number.Sum32()), AccountID: link.AccountID, ID: "approver:" + link.Approver, Role: store.RoleApprover,
	}))
	dr, err := d.api.GetDraft(p.ctx(), gen.GetDraftParams{DraftID: link.DraftID})
	if isMissing(err) {
		return linkView{}, link, errApproveLink
	}
	if err != nil {
		return linkView{}, link, err
	}
	v := linkView{Outdated: dr.Version != link.Version}
	v.approvalView, err = d.viewOf(p, dr, false)
	v.Here = approval.LinkPath + token
	if v.Frame != nil {
		_, query, _ := strings.Cut(v.Frame.Src, "?")
		v.Frame.Src, v.Frame.Ask = v.Here+"/view?"+query, ""
	}
	return v, link, err
}

// linkedDraft shows the draft of a link, with buttons if it is still the version that
// the link is for.
func (d *Dashboard) linkedDraft(p *page) error {
	v, _, err := d.linked(p)
	if err != nil {
		return err
	}
	return p.show("approve-link", v)
}

// linkedFrame writes the document in the frame of that page.
func (d *Dashboard) linkedFrame(p *page) error {
	v, _, err := d.linked(p)
	if err != nil {
		return err
	}
	return p.showFrame(draftSource(v.Draft))
}

// decideLinked approves or rejects the version of the draft that the link is for.
func (d *Dashboard) decideLinked(p *page) error {
	v, link, err := d.linked(p)
	if err != nil {
		return err
	}
	done := ""
	switch {
	case v.Outdated:
		return p.showStatus(http.StatusConflict, "approve-link", v)
	case p.form.Get("decision") == "approve":
		done = "approved"
		_, err = d.api.SendDraft(p.ctx(), gen.NewOptDraftSend(gen.DraftSend{Version: gen.NewOptInt(link.Version)}), gen.SendDraftParams{DraftID: link.DraftID})
	case p.form.Get("decision") == "reject":
		done = "rejected"
		_, err = d.api.RejectDraft(p.ctx(), gen.NewOptDraftReject(gen.DraftReject{Reason: optional(p.field("reason"))}),
			gen.RejectDraftParams{DraftID: link.DraftID})
	default:
		return errForm
	}
	pr, known := refusal(err)
	if err != nil && !known {
		return err
	}
	if v, _, err = d.linked(p); err != nil {
		return err
	}
	if pr.status != 0 {
		v.Problem = pr
		return p.showStatus(pr.status, "approve-link", v)
	}
	v.Done = done
	return p.show("approve-link", v)
}
