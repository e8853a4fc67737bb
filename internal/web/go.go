package web

import (
	"net/url"
	"strings"
)

func (d *Dashboard) goPages() { d.get("/go", pageOf("go", d.places)) }

// placesShown is how many inboxes the page lists.
const placesShown = 8

// goView lists where a text may lead: pages, inboxes, and a search for it.
type goView struct {
	Q      string
	Places []place
}

// place is a link with its icon. Kind says what it is, unless it is a page.
type place struct{ Path, Title, Icon, Kind string }

// places finds the pages of the menu and the inboxes that contain the text q.
func (d *Dashboard) places(p *page) (goView, error) {
	v := goView{Q: shortened(p.r.URL.Query().Get("q"), 200)}
	fold := strings.ToLower(v.Q)
	for _, g := range navigation {
		for _, i := range g.Items {
			if strings.Contains(strings.ToLower(i.Title), fold) {
				v.Places = append(v.Places, place{Path: i.Path, Title: i.Title, Icon: i.Icon})
			}
		}
	}
	inboxes, err := d.store.InboxesLike(p.ctx(), p.user.AccountID, v.Q, placesShown)
	if err != nil {
		return goView{}, err
	}
	for _, in := range inboxes {
		v.Places = append(v.Places, place{"/inboxes/" + in.ID, in.Address, "inbox", "Inbox"})
		if fold != "" {
			v.Places = append(v.Places, place{"/inboxes/" + in.ID + "/write", in.Address, "send", "New message"})
		}
	}
	if v.Q != "" {
		to := url.URL{Path: "/messages", RawQuery: url.Values{"q": {v.Q}}.Encode()}
		v.Places = append(v.Places, place{to.String(), "Search messages for “" + v.Q + "”", "search", ""})
	}
	return v, nil
}
