package web

import (
	"html/template"
	"strings"

	"github.com/postroom/postroom/store"
)

// navGroup is a section of the navigation.
type navGroup struct {
	Title string
	Items []navItem
}

// navItem is a page. Least is the role that sees it; empty means every role.
type navItem struct {
	Path, Title, Icon string
	Least             store.Role
}

// navigation is the menu of every page, in order.
var navigation = []navGroup{
	{"", []navItem{{"/", "Overview", "home", ""}}},
	{"Mail", []navItem{{"/inboxes", "Inboxes", "inbox", ""}, {"/messages", "Messages", "file", ""}, {approvalsPath, "Approvals", "check", ""}, {"/quarantine", "Quarantine", "shield", store.RoleAdmin}}},
	{"Sending", []navItem{{"/emails", "Sent mail", "send", ""}, {"/lists", "Allow and block rules", "filter", ""}, {"/suppressions", "Suppressions", "ban", ""}, {"/templates", "Templates", "layout", ""}, {"/contacts", "Contacts", "people", ""}}},
	{"Setup", []navItem{{"/domains", "Domains", "globe", ""}, {"/webhooks", "Webhooks", "zap", store.RoleAdmin}, {"/keys", "API keys", "key", store.RoleAdmin}, {"/logs", "Logs", "sheet", ""}, {"/settings", "Settings", "sliders", ""}}},
}

// subPages are pages below those of the menu, which have a title of their own.
var subPages = []navItem{
	{"/keys/new", "Create API key", "key", store.RoleAdmin}, {"/logs/events", "Events", "sheet", ""},
	{"/settings/people", "People", "people", store.RoleAdmin},
}

// navigationOf returns the menu for users with this role.
func navigationOf(role store.Role) []navGroup {
	groups := make([]navGroup, len(navigation))
	for i, g := range navigation {
		groups[i].Title = g.Title
		for _, item := range g.Items {
			if item.Least == "" || role.Includes(item.Least) {
				groups[i].Items = append(groups[i].Items, item)
			}
		}
	}
	return groups
}

// shortcut is a key, or more, and what it does.
type shortcut struct {
	Keys []string
	Does string
}

// shortcuts are the keys that the help lists. The scripts and the attribute
// data-key of the templates handle them.
var shortcuts = []shortcut{
	{[]string{"Ctrl", "K"}, "Go to a page or inbox, or search"},
	{[]string{"/"}, "Search"},
	{[]string{"j", "k"}, "Next and previous row"},
	{[]string{"o"}, "Open the row"},
	{[]string{"x"}, "Select the row"},
	{[]string{"Esc"}, "Close the message beside the list"},
	{[]string{"c"}, "New message"},
	{[]string{"r"}, "Reply to a message, or reject a draft"},
	{[]string{"a"}, "Approve a draft"},
	{[]string{"e"}, "Edit a draft"},
	{[]string{"?"}, "This help"},
}

// approvalsPath is the page whose menu item shows the number of waiting drafts.
const approvalsPath = "/approvals"

// onPage reports whether path is the page of a menu item, or below it.
func onPage(item, path string) bool {
	return path == item || item != "/" && strings.HasPrefix(path, item+"/")
}

// icons are the shapes of the icons, drawn by lines in a square of 24.
var icons = map[string]template.HTML{
	"home":     `<path d="M4 4h6v9H4zM14 4h6v4h-6zM14 12h6v8h-6zM4 17h6v3H4z"/>`,
	"inbox":    `<path d="M3 13h5l1.5 3h5L16 13h5M5.5 5h13L21 13v6H3v-6z"/>`,
	"check":    `<circle cx="12" cy="12" r="9"/><path d="m8 12.3 2.8 2.7L16 9.5"/>`,
	"send":     `<path d="M21 3 10 14M21 3l-7 18-4-7-7-4z"/>`,
	"ban":      `<circle cx="12" cy="12" r="9"/><path d="m5.7 5.7 12.6 12.6"/>`,
	"layout":   `<path d="M4 4h16v5H4zM4 13h8v7H4zM16 13h4v7h-4z"/>`,
	"people":   `<circle cx="9" cy="8" r="3.5"/><path d="M2.5 20c.6-3.6 3-5.5 6.5-5.5s5.9 1.9 6.5 5.5M16 4.8a3.5 3.5 0 0 1 0 6.4M18 15c2 .8 3.2 2.4 3.5 5"/>`,
	"globe":    `<circle cx="12" cy="12" r="9"/><path d="M3 12h18M12 3c2.6 2.7 3.8 5.7 3.8 9s-1.2 6.3-3.8 9c-2.6-2.7-3.8-5.7-3.8-9S9.4 5.7 12 3"/>`,
	"zap":      `<path d="M13 2 4 14h7l-1 8 9-12h-7z"/>`,
	"key":      `<circle cx="8" cy="15.5" r="4.5"/><path d="M11.2 12.3 20 3.5M16.5 7l3 3"/>`,
	"book":     `<path d="M12 6C9.5 4.5 7 4.5 3 5v14c4-.5 6.5-.5 9 1 2.5-1.5 5-1.5 9-1V5c-4-.5-6.5-.5-9 1zM12 6v14"/>`,
	"search":   `<circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/>`,
	"shield":   `<path d="M12 3 4.5 6v5.5c0 4.3 3 7.7 7.5 9.5 4.5-1.8 7.5-5.2 7.5-9.5V6z"/>`,
	"file":     `<path d="M6 3h8l4.5 4.5V21H6zM14 3v5h4.5"/>`,
	"image":    `<path d="M4 5h16v14H4zM4 16l5-5 4 4 3-2.5 4 3.5"/><circle cx="15.5" cy="9" r="1"/>`,
	"archive":  `<path d="M4 8h16v12H4zM3 4h18v4H3zM10 12h4"/>`,
	"sheet":    `<path d="M4 4h16v16H4zM4 10h16M4 15h16M10 4v16"/>`,
	"calendar": `<path d="M4 6h16v14H4zM4 10.5h16M8 3v5M16 3v5"/>`,
	"keyboard": `<path d="M3 6h18v12H3zM7 10h.01M11 10h.01M15 10h.01M7 14h10"/>`,
	"filter":   `<path d="M4 6h16M7 12h10M10 18h4"/>`,
	"sliders":  `<path d="M4 7h9M19 7h1M4 17h1M11 17h9"/><circle cx="16" cy="7" r="2.5"/><circle cx="8" cy="17" r="2.5"/>`,
	"plus":     `<path d="M12 5v14M5 12h14"/>`,
}

// icon returns the icon of this name as SVG. Texts beside it name what it means.
func icon(name string) template.HTML {
	return `<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">` + icons[name] + `</svg>`
}
