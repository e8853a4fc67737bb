package web_test

import (
	"fmt"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/go-faster/jx"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store/storetest"
)

// The page of a webhook says how its deliveries went, filters them, and retries
// those that failed.
func TestWebhookHealthAndRetry(t *testing.T) {
	s := openSite(t)
	to := newReceiver(t)
	ctx := s.asUser(t)
	w, err := s.api.CreateWebhook(ctx, &gen.WebhookCreate{URL: gen.WebhookUrl(to.url)})
	must(t, err)
	in := s.newInbox(t, "hooked", gen.SendPolicyOpen)
	v, at := s.visitAsUser(t), "/webhooks/"+w.ID
	v.get("/webhooks").want(t, http.StatusOK).has(t, "no deliveries")
	s.put(t, in, codeMail)
	s.deliver(t)
	to.status.Store(http.StatusServiceUnavailable)
	s.send(t, "ann@out.example", "Lost")
	s.deliver(t)
	v.get("/webhooks").want(t, http.StatusOK).has(t, `<span class="badge bad">50 %</span>`, "1 of 2", "failing since")
	to.status.Store(http.StatusGone) // ends the retries, and turns the endpoint off
	s.clock.Add(time.Minute)
	s.deliver(t)
	v.post(at+"/retry", nil).want(t, http.StatusSeeOther)
	v.get(at).want(t, http.StatusOK).has(t, "is disabled")
	v.post(at+"/active", []string{"active", "true"}).want(t, http.StatusSeeOther)
	page := v.get(at+"?type=email.queued&status=failed").want(t, http.StatusOK).has(t, "410 after", `<option selected>email.queued</option>`)
	if strings.Contains(page.body, "200 after") {
		t.Error("the filter leaves what succeeded")
	}
	v.get(at+"?type=draft.sent").want(t, http.StatusOK).has(t, "No delivery matches the filters")
	v.get(at+"?type=nonsense").want(t, http.StatusBadRequest)
	l, err := s.api.ListWebhookDeliveries(ctx, gen.ListWebhookDeliveriesParams{WebhookID: w.ID})
	must(t, err)
	delivery := at + "/deliveries/" + l.Data[0].ID
	v.get(delivery).want(t, http.StatusOK).has(t, "410", l.Data[0].EventID, "&#34;subject&#34;: &#34;Lost&#34;")
	to.status.Store(http.StatusOK)
	v.post(at+"/retry", nil).want(t, http.StatusSeeOther)
	v.get(at).want(t, http.StatusOK).has(t, "1 failed delivery is queued for retry.")
	s.deliver(t)
	v.get(at).want(t, http.StatusOK).has(t, `<span class="badge good">100 %</span>`, "2 of 2")
	v.get(at+"/deliveries/dlv_none").want(t, http.StatusNotFound)
	v.get("/webhooks/whk_none/deliveries/"+l.Data[0].ID).want(t, http.StatusNotFound)
	other, err := s.api.CreateWebhook(ctx, &gen.WebhookCreate{URL: gen.WebhookUrl(to.url + "/2")})
	must(t, err)
	v.get("/webhooks/"+other.ID+"/deliveries/"+l.Data[0].ID).want(t, http.StatusNotFound)
	s.clock.Add(25 * time.Hour)
	v.get(at).want(t, http.StatusOK).has(t, "no deliveries")
	s.otherAccount(t)
	s.visitAsUser(t).get(delivery).want(t, http.StatusNotFound)
}

func TestBrowserCreatesAndRevokesAKey(t *testing.T) {
	s := openSQLite(t)
	in, _ := s.newInbox(t, "signup", gen.SendPolicyOpen), s.newInbox(t, "billing", gen.SendPolicyOpen)
	b := s.browse(t)
	b.open("/keys")
	b.click(".empty .button")
	b.fill("[name=name]", "sign-up agent")
	b.shoot("key-new")
	b.fill("[data-filter]", "SIGN")
	if got := b.eval(`[...document.querySelectorAll('#inbox-choices label')].filter((l) => l.offsetHeight).map((l) => l.innerText.trim()).join()`); got != in.Address {
		t.Errorf("the picker shows %q, want %s alone", got, in.Address)
	}
	b.do(chromedp.Click(chromedp.CSS("[name=inbox_ids][value=" + in.ID + "]")))
	b.do(chromedp.Click(chromedp.CSS("[value=custom]")), chromedp.Click(chromedp.CSS("[value='codes:read']"), chromedp.NodeVisible))
	b.do(chromedp.SetValue(chromedp.CSS("[name=allowed_ips]"), "nowhere"), chromedp.Click(chromedp.CSS("details.more summary")))
	b.fill("[name=sends_per_hour]", "50")
	b.expect("400")
	b.loads(http.StatusBadRequest, chromedp.Click(chromedp.CSS(".key-form > div:last-child button")))
	b.shows("CIDR")
	b.shoot("key-refused")
	b.fill("[name=allowed_ips]", "192.0.2.0/24, 2001:db8::/48")
	b.click(".key-form > div:last-child button")
	secret := b.text("#secret")
	if !strings.HasPrefix(secret, "sk_restr_") {
		t.Errorf("the key is %q", secret)
	}
	b.shows(in.ID, "Bearer "+secret)
	b.shoot("key-secret")
	b.do(chromedp.Click(chromedp.CSS("label[for=tab-mcp]")))
	b.copies(".panel:nth-of-type(6) button", b.text("#code-mcp"))
	if config := b.text("#code-mcp"); !strings.Contains(config, "Bearer "+secret) || !strings.Contains(config, s.url+"/mcp") {
		t.Errorf("the configuration of an agent is %s", config)
	}
	b.click("p > a.button")
	b.shows("sign-up agent", "codes:read", "192.0.2.0/24", "never", "in 1 inbox", "with limits")
	b.shoot("keys")
	if strings.Contains(b.text("main"), secret) {
		t.Error("the list shows the key")
	}
	b.click("td a")
	b.shows(in.Address, "never")
	b.shoot("key")
	if got := b.attribute("[name=sends_per_hour]", "value"); got != "50" {
		t.Errorf("the limit is %q", got)
	}
	b.fill("[name=sends_per_hour]", "20")
	b.click("form[action$=limits] button")
	b.shows("Limits saved")
	b.do(chromedp.Click(chromedp.CSS(".sure summary")))
	b.click(".sure form button")
	b.shows("API key revoked", "No API keys yet")
}

// Each preset makes a key with these permissions, and the limits of keys and
// inboxes can be set, changed and removed by forms.
func TestKeyPresetsAndLimits(t *testing.T) {
	s := openSite(t)
	in := s.newInbox(t, "agent", gen.SendPolicyOpen)
	v, ctx := s.visitAsUser(t), s.asUser(t)
	newest := func() gen.ApiKey {
		t.Helper()
		l, err := s.api.ListApiKeys(ctx, gen.ListApiKeysParams{})
		must(t, err)
		return l.Data[0]
	}
	for _, tt := range []struct{ preset, test, scopes, mode string }{
		{"agent", "", "[read send]", "restricted"},
		{"send", "", "[emails:send]", "restricted"},
		{"read", "", "[read]", "restricted"},
		{"full", "", "[*]", "live"},
		{"agent", "1", "[read send]", "test"},
	} {
		at := v.post("/keys", []string{"name", tt.preset, "preset", tt.preset, "test", tt.test, "scopes", "keys:manage", "expires", "7"}).
			want(t, http.StatusSeeOther).header.Get("Location")
		k := newest()
		if fmt.Sprint(k.Scopes) != tt.scopes || k.Mode != tt.mode || !k.ExpiresAt.Value.Equal(s.clock.Now().AddDate(0, 0, 7).Truncate(time.Millisecond)) {
			t.Errorf("%s %s: %v, %s, expires %s", tt.preset, tt.test, k.Scopes, k.Mode, k.ExpiresAt.Value)
		}
		page := v.get(at).want(t, http.StatusOK)
		if sends := strings.Contains(page.body, s.url+"/v1/emails"); sends != (tt.preset == "send") {
			t.Errorf("%s: the example sends an email: %t", tt.preset, sends)
		}
		if simulates := strings.Contains(page.body, "/simulate"); simulates != (tt.scopes == "[read send]" || tt.scopes == "[*]") {
			t.Errorf("%s: the example simulates a message: %t", tt.preset, simulates)
		}
	}
	v.post("/keys", []string{"name", "x", "preset", "custom"}).want(t, http.StatusBadRequest).has(t, "Select at least one permission")
	v.post("/keys", []string{"name", "x", "preset", "agent", "other_inboxes", "missing@" + storetest.Domain}).want(t, http.StatusBadRequest).has(t, "No inbox missing@")
	v.post("/keys", []string{"name", "x", "preset", "agent", "sends_per_day", "many"}).want(t, http.StatusBadRequest).has(t, "Limits are whole numbers", `value="many"`)
	v.post("/keys", []string{"name", "limited", "preset", "agent", "other_inboxes", strings.ToUpper(in.Address), "sends_per_day", "5", "on_limit", "approval"}).want(t, http.StatusSeeOther)
	k := newest()
	if l := k.Limits.Value; len(k.InboxIds) != 1 || k.InboxIds[0] != in.ID || l.SendsPerDay.Value != 5 || l.OnLimit != "approval" || !l.SendsPerHour.Null {
		t.Errorf("the key is for %v with the limits %+v", k.InboxIds, l)
	}
	v.get("/keys/"+k.ID).want(t, http.StatusOK).has(t, in.Address, `value="5"`, `<option value="approval" selected>`)
	v.post("/keys/"+k.ID+"/limits", []string{"sends_per_day", "-1"}).want(t, http.StatusBadRequest).has(t, "limits-fault")
	v.post("/keys/"+k.ID+"/limits", nil).want(t, http.StatusSeeOther)
	if k = newest(); !k.Limits.Null {
		t.Errorf("the limits are still %+v", k.Limits.Value)
	}
	settings := []string{"display_name", "", "send_policy", "open", "retention_days", "30"}
	v.post("/inboxes/"+in.ID+"/settings", append(settings, "new_recipients_per_day", "0")).want(t, http.StatusSeeOther)
	got, err := s.api.GetInbox(ctx, gen.GetInboxParams{InboxID: in.ID})
	must(t, err)
	if l := got.Limits.Value; l.NewRecipientsPerDay.Null || l.NewRecipientsPerDay.Value != 0 || l.OnLimit != "refuse" {
		t.Errorf("the limits of the inbox are %+v", l)
	}
	v.get("/inboxes/"+in.ID+"/settings").want(t, http.StatusOK).has(t, `name="new_recipients_per_day" type="number" min="0" inputmode="numeric" placeholder="no limit" value="0"`)
	v.post("/inboxes/"+in.ID+"/settings", append(settings, "sends_per_day", "x")).want(t, http.StatusBadRequest).has(t, "Limits are whole numbers")
	s.otherAccount(t)
	other := s.visitAsUser(t)
	other.get("/keys/"+k.ID).want(t, http.StatusNotFound)
	other.post("/keys", []string{"name", "x", "preset", "agent", "other_inboxes", in.Address}).want(t, http.StatusBadRequest).has(t, "No inbox")
}

// Templates are created, edited, previewed, sent and deleted without script, and what
// is wrong stands beside the field that keeps its text.
func TestTemplatePages(t *testing.T) {
	s := openSite(t)
	v, ctx := s.visitAsUser(t), s.asUser(t)
	whole := func(edits ...string) []string {
		return append([]string{"name", "n", "subject", "Hi {{a.b}} {{c}}", "html", "<p>{{c}}</p><img src=\"https://pixel.example/1.gif\">", "text", ""}, edits...)
	}
	for _, bad := range [][]string{{"subject", "Hi {{", "subject-fault"}, {"html", "<a onclick=\"{{c}}\">", "html-fault"}, {"text", "{{", "text-fault"}, {"name", "", "name-fault"}} {
		fields := map[string]string{"name": "n", "subject": "s", "html": "<p>h</p>", "text": "Kept text"}
		if bad[0] == "text" {
			fields["html"] = "Kept text"
		}
		fields[bad[0]] = bad[1]
		var form []string
		for k, value := range fields {
			form = append(form, k, value)
		}
		v.post("/templates/new", form).want(t, http.StatusBadRequest).has(t, bad[2], "\nKept text</textarea>", `<a href="/templates" aria-current="page">`)
	}
	at := v.post("/templates/new", whole()).want(t, http.StatusSeeOther).header.Get("Location")
	id := strings.TrimPrefix(at, "/templates/")
	v.get(at).want(t, http.StatusOK).has(t, "Template created.", `src="`+at+`/view"`, "&#34;b&#34;: &#34;a.b&#34;", `<a href="/templates" aria-current="page">`)
	v.get(at+"/view").want(t, http.StatusOK).has(t, "Subject: Hi a.b c", "<p>c</p>", `src="https://pixel.example/1.gif"`)
	preview := func(data string) response {
		return v.post("/templates/preview", whole("data", data)).want(t, http.StatusOK)
	}
	if page := preview(`{"a": {"b": "one"}, "c": "<b>two"}`).has(t, "Hi one &lt;b&gt;two"); strings.Contains(page.body, "Without a value") {
		t.Error("a variable is still missing")
	}
	preview(`{"c": "x"}`).has(t, "Without a value: a.b", "<p>x</p>")
	preview(`{"c": "a\nb"}`).has(t, "<pre>variable c in subject")
	preview("[]").has(t, "not a JSON object")
	v.post("/templates/preview", []string{"subject", "{{", "data", "{}"}).want(t, http.StatusOK).has(t, "<pre>subject")
	v.post(at+"/send", whole("from", "bob", "to", "ann@out.example", "data", `{"c": "kept"}`)).want(t, http.StatusBadRequest).has(t, "from-fault", "kept&#34;", `value="ann@out.example"`)
	v.post(at+"/send", whole("from", "shop@"+storetest.Domain, "to", "ann@out.example", "data", "x")).want(t, http.StatusBadRequest).has(t, "data-fault")
	sent := v.post(at+"/send", whole("from", "shop@"+storetest.Domain, "to", "ann@out.example", "data", `{"a": {"b": "one"}, "c": ""}`)).want(t, http.StatusSeeOther).header.Get("Location")
	v.get(sent).want(t, http.StatusOK).has(t, "Hi one ", "Email queued.")
	v.get("/templates/new?from="+id).want(t, http.StatusOK).has(t, `value="Copy of n"`, "Hi {{a.b}} {{c}}")
	v.get("/templates?to=ann@out.example").want(t, http.StatusOK).has(t, `href="`+at+`?to=ann%40out.example"`)
	v.post(at, []string{"name", "renamed", "subject", "", "html", "<p>x</p>"}).want(t, http.StatusBadRequest).has(t, "subject-fault", `value="renamed"`)
	v.post(at, []string{"name", "renamed", "subject", "S", "html", "<p>x</p>", "text", "T"}).want(t, http.StatusSeeOther)
	got, err := s.api.GetTemplate(ctx, gen.GetTemplateParams{ID: id})
	must(t, err)
	if got.Name != "renamed" || got.Subject != "S" || got.Text.Value != "T" {
		t.Errorf("the template is %+v", got)
	}
	v.get(at).want(t, http.StatusOK).has(t, `value="renamed"`)
	v.post(at, []string{"name", "renamed", "subject", "S", "html", "{{#each list}}<p>{{x}}</p>{{/each}}"}).want(t, http.StatusSeeOther)
	v.get(at+"/view").want(t, http.StatusOK).has(t, "<p>x</p><p>x</p>")
	s.otherAccount(t)
	s.visitAsUser(t).get(at).want(t, http.StatusNotFound)
	s.visitAsUser(t).get(at+"/view").want(t, http.StatusNotFound)
	v.post(at+"/delete", nil).want(t, http.StatusSeeOther)
	v.get("/templates").want(t, http.StatusOK).has(t, "No templates yet")
	v.post(at, whole()).want(t, http.StatusNotFound)
}

// The form of a contact keeps the types of tags and metadata, and shows what is wrong
// beside the field.
func TestContactPages(t *testing.T) {
	s := openSite(t)
	v, ctx := s.visitAsUser(t), s.asUser(t)
	c, err := s.api.CreateContact(ctx, &gen.ContactCreate{
		Email: "ann@out.example", FirstName: gen.NewOptNilString("Ann"),
		Tags:     gen.NewOptTags(gen.Tags{"plan": jx.Raw(`"pro"`), "seats": jx.Raw("5"), "code": jx.Raw(`"5"`), "beta": jx.Raw("true"), "a:b": jx.Raw(`"c: d"`)}),
		Metadata: gen.NewOptFreeObject(gen.FreeObject{"order": jx.Raw(`{"n":12345678901234567890}`)}),
	}, gen.CreateContactParams{})
	must(t, err)
	at := "/contacts/" + c.ID
	page := v.get(at).want(t, http.StatusOK).has(t, "plan: pro\n", "seats: 5\n", "code: &#34;5&#34;\n", "beta: true\n", "a:b: c: d\n", "12345678901234567890")
	area := func(name string) string {
		_, rest, _ := strings.Cut(page.body, `<textarea name="`+name+`"`)
		_, rest, _ = strings.Cut(rest, ">\n")
		text, _, _ := strings.Cut(rest, "</textarea>")
		return html.UnescapeString(text)
	}
	v.post(at, []string{"email", "ann@out.example", "last_name", "Smith", "tags", area("tags"), "metadata", area("metadata")}).want(t, http.StatusSeeOther)
	got, err := s.api.GetContact(ctx, gen.GetContactParams{ID: c.ID})
	must(t, err)
	if fmt.Sprint(got.Tags) != fmt.Sprint(c.Tags) || string(got.Metadata["order"]) != `{"n":12345678901234567890}` || !got.FirstName.Null || got.LastName.Value != "Smith" {
		t.Errorf("after saving: %+v, want the tags %s", got, c.Tags)
	}
	v.post("/contacts/new", []string{"email", "ANN@out.example", "first_name", "Kept"}).want(t, http.StatusConflict).has(t, "email-fault", `value="Kept"`)
	v.post("/contacts/new", []string{"email", "bob", "first_name", "Kept"}).want(t, http.StatusBadRequest).has(t, "email-fault", `value="Kept"`)
	v.post(at, []string{"email", "ann@out.example", "metadata", "[1]"}).want(t, http.StatusBadRequest).has(t, "metadata-fault", "[1]")
	v.post(at, []string{"email", "ann@out.example", "tags", "nothing"}).want(t, http.StatusBadRequest).has(t, "tags-fault", "nothing")
	v.post(at, []string{"email", "ann@out.example", "metadata", `{"x":"` + strings.Repeat("y", 5<<10) + `"}`}).want(t, http.StatusBadRequest).has(t, "metadata-fault")
	v.post("/contacts/new", []string{"email", "bob@out.example"}).want(t, http.StatusSeeOther)
	v.get("/contacts?email=BOB%40out.example").want(t, http.StatusOK).has(t, ">bob@out.example</a>")
	v.get("/contacts?email=carl%40out.example").want(t, http.StatusOK).has(t, `href="/contacts/new?email=carl%40out.example"`)
	v.get("/contacts/new?email=carl%40out.example").want(t, http.StatusOK).has(t, `value="carl@out.example"`)
	s.otherAccount(t)
	other := s.visitAsUser(t)
	other.get(at).want(t, http.StatusNotFound)
	other.post(at, []string{"email", "eve@out.example"}).want(t, http.StatusNotFound)
	other.post(at+"/delete", nil).want(t, http.StatusSeeOther)
	v.post(at+"/delete", nil).want(t, http.StatusSeeOther)
	v.get(at).want(t, http.StatusNotFound)
}

// The pages work without script, and say what is wrong in words.
func TestPagesWithoutScript(t *testing.T) {
	s := openSite(t)
	s.sendSome(t)
	v := s.visitAsUser(t)
	to := v.post("/domains", []string{"domain", "corner-shop.example"}).want(t, http.StatusSeeOther).header.Get("Location")
	if a := v.get(to, "Accept", "text/html").want(t, http.StatusOK); strings.Contains(a.body, "corner-shop.example added") {
		t.Error("a script took the notice")
	}
	v.get(to).want(t, http.StatusOK).has(t, "corner-shop.example added")
	v.get(to).has(t, "Missing:")
	s.dns.Set(t, smtptest.Zones{"_postroom.corner-shop.example.": {TXT: []string{"postroom-verification=<another>"}}})
	v.post(to+"/verify", nil).want(t, http.StatusSeeOther)
	v.get(to).has(t, "Not verified yet", "DNS has <code>postroom-verification=&lt;another&gt;</code>", "want only <code>_postroom</code>", "want only <code>@</code>")
	v.post("/domains", []string{"domain", "https://www.Bakery.example/about"}).want(t, http.StatusSeeOther)
	v.get("/domains").has(t, ">bakery.example</a>")
	v.post("/domains", []string{"domain", "corner-shop.example"}).want(t, http.StatusConflict).has(t, "domain-fault")
	v.get("/domains/dom_nothing").want(t, http.StatusNotFound).has(t, "Page not found")
	v.post("/domains/dom_nothing/delete", nil).want(t, http.StatusSeeOther)
	v.get("/domains").has(t, `class="notice bad"`)
	v.get("/emails?status=nonsense").want(t, http.StatusBadRequest).has(t, "Request refused")
	v.get("/emails").want(t, http.StatusOK).has(t, "Next page", "What is new this week")
	v.get("/").want(t, http.StatusOK).has(t, "<svg", "Show as table")
}

// Every page of an account with much in it loads without an error of the browser, is
// accessible, and fits a phone.
func TestBrowserOpensEveryPage(t *testing.T) {
	s := openSQLite(t)
	_, inbox := fillForWalk(t, s)
	ctx := s.asUser(t)
	emails, err := s.api.ListEmails(ctx, gen.ListEmailsParams{})
	must(t, err)
	domains, err := s.api.ListDomains(ctx, gen.ListDomainsParams{})
	must(t, err)
	templates, err := s.api.ListTemplates(ctx, gen.ListTemplatesParams{})
	must(t, err)
	contacts, err := s.api.ListContacts(ctx, gen.ListContactsParams{})
	must(t, err)
	hooks, err := s.api.ListWebhooks(ctx, gen.ListWebhooksParams{})
	must(t, err)
	deliveries, err := s.api.ListWebhookDeliveries(ctx, gen.ListWebhookDeliveriesParams{WebhookID: hooks.Data[0].ID})
	must(t, err)
	hook := "/webhooks/" + hooks.Data[0].ID
	b := s.browse(t)
	for _, path := range append(web.NavigationPaths(),
		"/inboxes/"+inbox, "/inboxes/"+inbox+"/settings", "/emails/"+emails.Data[0].ID, "/domains/"+domains.Data[0].ID,
		"/templates/"+templates.Data[0].ID, "/contacts/"+contacts.Data[0].ID, "/contacts/new", "/quarantine", "/settings/people", "/settings/health",
		"/logs/events", "/logs/smtp", hook, hook+"/deliveries/"+deliveries.Data[0].ID) {
		b.open(path)
		b.shoot("page" + strings.ReplaceAll(path, "/", "-"))
	}
}
