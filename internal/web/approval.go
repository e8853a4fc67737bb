package web

import (
	"cmp"
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
	list[gen.Draft]
	Undo      undoable
	Status    string // pending, scheduled, sent or rejected
	Addresses map[string]string
	Live      string
}

func (d *Dashboard) approvals(p *page) error {
	v := approvalsView{Status: cmp.Or(p.r.URL.Query().Get("status"), string(gen.DraftStatusPending)), Addresses: map[string]string{}}
	l, err := d.api.ListDrafts(p.ctx(), gen.ListDraftsParams{
		Status: gen.NewOptDraftStatus(gen.DraftStatus(v.Status)), Limit: limit(), Cursor: p.cursor(),
	})
	if err != nil {
		return err
	}
	v.Rows, v.paging = l.Data, p.paging(l.Cursor)
	if err := p.addInboxes(v.Addresses, textsOf(v.Rows, func(dr gen.Draft) string { return dr.InboxID })...); err != nil {
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
	return d.undoOf(dr), nil
}

// undoOf is the way back from the approval of a draft, if there is one.
func (d *Dashboard) undoOf(dr *gen.Draft) undoable {
	left := dr.SendAfter.Or(time.Time{}).Sub(d.now())
	if left <= 0 {
		return undoable{}
	}
	return undoable{dr.ID, int(math.Ceil(left.Seconds()))}
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
	Undo            undoable // of this draft, or the one that was decided before it
	Form            form
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
		v.AllText = mailhtml.AllText(source.HTML)
	}
	if id, ok := dr.SourceMessageID.Get(); ok {
		if v.Source, err = d.getMessage(p, id); isMissing(err) {
			v.Source, err = nil, nil // deleted since
		}
	}
	return v, err
}

// showApproval shows a draft with the buttons that decide about it. After a form it shows what
// the form changed, or why it failed.
func (d *Dashboard) showApproval(p *page) error {
	dr, err := d.draft(p)
	if err != nil {
		return err
	}
	v, err := d.viewOf(p, dr, p.asksRemote(draftSource(dr)))
	if err != nil {
		return err
	}
	v.You, v.Form = p.user.ID, p.formOf(nil)
	v.Saved, v.Conflict = p.form != nil && p.problem.status == 0, p.problem.code == gen.ErrorCodeDraftChanged
	if v.Saved || v.Conflict {
		v.Changes = changesSince(p.form, dr)
	}
	if v.Undo = d.undoOf(dr); v.Undo.ID == "" {
		if v.Undo, err = d.undoable(p); err != nil {
			return err
		}
	}
	if v.Pending() {
		if v.Previous, v.Next, err = d.neighbours(p, dr.ID); err != nil {
			return err
		}
	}
	if v.Names, err = d.callers(p); err != nil {
		return err
	}
	return p.show("approval", v)
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
	return p.decide(approvalsPath, "draft", "to approve", "approved", func(selected string) error {
		id, text, _ := strings.Cut(selected, ":")
		version, err := strconv.Atoi(text)
		if err != nil {
			return errForm
		}
		_, err = d.sendDraft(p, id, version)
		return err
	})
}

func (d *Dashboard) sendDraft(p *page, id string, version int) (*gen.Message, error) {
	return d.api.SendDraft(p.ctx(), gen.NewOptDraftSend(gen.DraftSend{Version: gen.NewOptInt(version)}), gen.SendDraftParams{DraftID: id})
}

func (d *Dashboard) rejectDraft(p *page, id string) (*gen.Draft, error) {
	why := gen.DraftReject{Reason: optional(p.field("reason"))}
	return d.api.RejectDraft(p.ctx(), gen.NewOptDraftReject(why), gen.RejectDraftParams{DraftID: id})
}

// draft returns the draft whose id is in the path.
func (d *Dashboard) draft(p *page) (*gen.Draft, error) {
	return d.api.GetDraft(p.ctx(), gen.GetDraftParams{DraftID: p.id()})
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
	next, err := d.afterwards(p, p.id())
	if err != nil {
		return err
	}
	m, err := d.sendDraft(p, p.id(), version)
	if err != nil {
		return p.again(err, d.showApproval)
	}
	return p.done(next+"?undo="+url.QueryEscape(p.id()), "Approved: “"+shortened(m.Subject, 60)+"” is queued for delivery.")
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
	path := "/approvals/" + url.PathEscape(p.id())
	_, err := d.api.UndoDraft(p.ctx(), gen.UndoDraftParams{DraftID: p.id()})
	return p.result(err, path, path, "Approval undone. Nothing was sent.")
}

func (d *Dashboard) reject(p *page) error {
	next, err := d.afterwards(p, p.id())
	if err != nil {
		return err
	}
	dr, err := d.rejectDraft(p, p.id())
	if err != nil {
		return p.again(err, d.showApproval)
	}
	return p.done(next, "Rejected: “"+shortened(dr.Subject, 60)+"” will not be sent.")
}

// editView is the page on which a user edits a draft. The field "undecided" of the form is
// what happens and after how many seconds, "wait", or "" to keep what happens if nobody decides.
type editView struct {
	Draft   *gen.Draft
	Form    form
	Changes []change // by another user
}

// editDraftForm shows both versions if another user has changed the draft in the meantime.
func (d *Dashboard) editDraftForm(p *page) error {
	dr, err := d.draft(p)
	if err != nil {
		return err
	}
	v := editView{Draft: dr, Form: p.formOf(url.Values{"subject": {dr.Subject}, "text": {dr.Text.Or("")}, "html": {dr.HTML.Or("")}})}
	if v.Form.code == gen.ErrorCodeDraftChanged {
		v.Form.Message = "Another user edited this draft. Review their changes, then save again to keep yours."
		v.Changes = changesSince(p.form, dr)
	}
	return p.show("draft-edit", v)
}

func (d *Dashboard) editDraft(p *page) error {
	dr, err := d.draft(p)
	if err != nil {
		return err
	}
	version, err := strconv.Atoi(p.form.Get("version"))
	if err != nil {
		return errForm
	}
	req := gen.DraftUpdate{Subject: gen.NewOptString(p.field("subject")), Version: gen.NewOptInt(version)}
	changed := func(field, now string) gen.OptNilString {
		value := unixLines(p.form.Get(field))
		return gen.OptNilString{Value: value, Set: value != unixLines(now), Null: value == ""}
	}
	req.Text, req.HTML = changed("text", dr.Text.Or("")), changed("html", dr.HTML.Or(""))
	if err := endWaiting(&req, p.form.Get("undecided")); err != nil {
		return err
	}
	saved, err := d.api.UpdateDraft(p.ctx(), &req, gen.UpdateDraftParams{DraftID: dr.ID})
	if err != nil {
		return p.again(err, d.editDraftForm)
	}
	if p.form.Get("approve") != "" {
		return d.approveVersion(p, saved.Version)
	}
	return d.showApproval(p)
}

// endWaiting adds to a request when the draft stops waiting, and what happens then.
func endWaiting(req *gen.DraftUpdate, ending string) error {
	then, in, timed := strings.Cut(ending, " ")
	switch {
	case ending == "":
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
	v.Here, v.Form = approval.LinkPath+token, p.formOf(nil)
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
	switch {
	case v.Outdated:
		p.problem = problem{status: http.StatusConflict}
		return p.show("approve-link", v)
	case p.form.Get("decision") == "approve":
		_, err = d.sendDraft(p, link.DraftID, link.Version)
	case p.form.Get("decision") == "reject":
		_, err = d.rejectDraft(p, link.DraftID)
	default:
		return errForm
	}
	if err != nil {
		return p.again(err, d.linkedDraft)
	}
	return p.goTo(v.Here)
}
