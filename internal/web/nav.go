package web

import (
	_ "embed" // the shapes of icons
	"html/template"
	"slices"
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
		groups[i] = navGroup{g.Title, visible(g.Items, role)}
	}
	return groups
}

// visible returns the pages that users with this role see.
func visible(pages []navItem, role store.Role) []navItem {
	return slices.DeleteFunc(slices.Clone(pages), func(i navItem) bool { return i.Least != "" && !role.Includes(i.Least) })
}

// approvalsPath is the page whose menu item shows the number of waiting drafts.
const approvalsPath = "/approvals"

// onPage reports whether path is the page of a menu item, or below it.
func onPage(item, path string) bool {
	return path == item || item != "/" && strings.HasPrefix(path, item+"/")
}

//go:embed templates/icons.txt
var iconLines string

// icons are the shapes of the icons, drawn by lines in a square of 24, one a line.
var icons = func() map[string]template.HTML {
	shapes := map[string]template.HTML{}
	for line := range strings.Lines(iconLines) {
		name, shape, _ := strings.Cut(strings.TrimSpace(line), " ")
		shapes[name] = template.HTML(shape) //nolint:gosec // our own
	}
	return shapes
}()

// icon returns the icon of this name as SVG. Texts beside it name what it means.
func icon(name string) template.HTML {
	return `<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">` + icons[name] + `</svg>`
}
