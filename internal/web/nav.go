package web

import "strings"

// navGroup is a part of the navigation.
type navGroup struct {
	Title string
	Items []navItem
}

type navItem struct{ Path, Title string }

// navigation is what stands beside every page, in this order.
var navigation = []navGroup{
	{"", []navItem{{"/", "Overview"}}},
	{"Mail", []navItem{{"/inboxes", "Inboxes"}, {approvalsPath, "Approvals"}}},
	{"Sending", []navItem{{"/emails", "Sent mail"}, {"/suppressions", "Suppressions"}, {"/templates", "Templates"}, {"/contacts", "Contacts"}}},
	{"Settings", []navItem{{"/domains", "Domains"}, {"/webhooks", "Webhooks"}, {"/keys", "API keys"}}},
}

// approvalsPath is the page whose item shows how much waits there.
const approvalsPath = "/approvals"

// onPage says whether a page is, or stands below, the one that an item of the
// navigation leads to.
func onPage(item, path string) bool {
	return path == item || item != "/" && strings.HasPrefix(path, item+"/")
}
