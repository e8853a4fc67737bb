package web

import "strings"

// navGroup is a section of the navigation.
type navGroup struct {
	Title string
	Items []navItem
}

type navItem struct{ Path, Title string }

// navigation is the menu of every page, in order.
var navigation = []navGroup{
	{"", []navItem{{"/", "Overview"}}},
	{"Mail", []navItem{{"/inboxes", "Inboxes"}, {approvalsPath, "Approvals"}}},
	{"Sending", []navItem{{"/emails", "Sent mail"}, {"/suppressions", "Suppressions"}, {"/templates", "Templates"}, {"/contacts", "Contacts"}}},
	{"Settings", []navItem{{"/domains", "Domains"}, {"/webhooks", "Webhooks"}, {"/keys", "API keys"}}},
}

// approvalsPath is the page whose menu item shows the number of waiting drafts.
const approvalsPath = "/approvals"

// onPage reports whether path is the page of a menu item, or below it.
func onPage(item, path string) bool {
	return path == item || item != "/" && strings.HasPrefix(path, item+"/")
}
