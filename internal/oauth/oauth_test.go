package oauth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/postroom/postroom/internal/maintenance"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// The client of the Go SDK finds the server, registers, has the person approve, and
// calls tools with what it got.
func TestGoClientConnects(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		const back = "http://localhost:3118/callback"
		asked := 0
		handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
			DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
				ClientName: "Go client", RedirectURIs: []string{back}, GrantTypes: []string{"authorization_code", "refresh_token"},
			}},
			AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
				asked++
				u, err := url.Parse(args.URL)
				if err != nil {
					return nil, err
				}
				in.page(t, u.Query()).want(t, http.StatusOK, "Go client", "this computer (localhost)")
				a := in.decide(t, u.Query())
				if to := a.header.Get("Location"); !strings.HasPrefix(to, back+"?") {
					return nil, fmt.Errorf("redirected to %q: %s", to, a.body)
				}
				q := a.query(t)
				return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
			},
		})
		must(t, err)
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: in.url + "/mcp", OAuthHandler: handler}, nil)
		must(t, err)
		t.Cleanup(func() { _ = session.Close() }) // the server has no sessions
		tools, err := session.ListTools(t.Context(), nil)
		must(t, err)
		names := map[string]bool{}
		for _, tool := range tools.Tools {
			names[tool.Name] = true
		}
		if asked != 1 || !names["wait_for_code"] || names["send_email"] || names["create_inbox"] {
			t.Errorf("asked %d times; tools %v", asked, names)
		}
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_inboxes", Arguments: map[string]any{}})
		if err != nil || res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, in.inbox.Address) {
			t.Errorf("%+v, %v", res, err)
		}
		apps := in.applications(t)
		if len(apps) != 1 || apps[0].Name != "Go client" || apps[0].RedirectURI != back || apps[0].Mode != store.KeyRestricted ||
			fmt.Sprint(apps[0].Scopes.V, apps[0].InboxIDs.V) != fmt.Sprint([]string{"read"}, []string{in.inbox.ID}) {
			t.Errorf("connected: %+v", apps)
		}
		if left := apps[0].ExpiresAt.Sub(in.clock.Now()); left < 29*24*time.Hour || left > 30*24*time.Hour {
			t.Errorf("the key expires in %v", left)
		}
	})
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		a := in.request(t, "POST", "/mcp", `{}`, "Content-Type", "application/json").want(t, http.StatusUnauthorized)
		want := `Bearer resource_metadata="` + in.base + `/.well-known/oauth-protected-resource/mcp"`
		if got := a.header.Get("WWW-Authenticate"); got != want {
			t.Errorf("WWW-Authenticate: %s, want %s", got, want)
		}
		if got := in.request(t, "GET", "/v1/inboxes", "").want(t, http.StatusUnauthorized).header.Get("WWW-Authenticate"); got != "Bearer" {
			t.Errorf("WWW-Authenticate of the API: %s", got)
		}
		for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
			m := in.request(t, "GET", path, "").want(t, http.StatusOK).json(t)
			if m["resource"] != in.base+"/mcp" || fmt.Sprint(m["authorization_servers"]) != "["+in.base+"]" {
				t.Errorf("%s: %v", path, m)
			}
		}
		m := in.request(t, "GET", "/.well-known/oauth-authorization-server", "").want(t, http.StatusOK).json(t)
		if m["issuer"] != in.base || fmt.Sprint(m["code_challenge_methods_supported"]) != "[S256]" || m["registration_endpoint"] != in.base+"/oauth/register" {
			t.Errorf("%v", m)
		}
		in.request(t, "POST", "/.well-known/oauth-protected-resource", "").want(t, http.StatusNotFound)
		in.request(t, "GET", "/oauth/token", "").want(t, http.StatusNotFound)
		// The issuer has no path (RFC 8414 section 3.3), so that clients must not find one there.
		in.request(t, "GET", "/.well-known/oauth-authorization-server/mcp", "").want(t, http.StatusNotFound)
	})
}

// A code works once, for its application, with its verifier, within a minute.
func TestCodeIsBoundToClientAndVerifier(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		mine, other := in.register(t, "mine"), in.register(t, "other")
		for _, tt := range []struct {
			name, client, want string
			status             int
			changes            []string
		}{
			{"a wrong verifier", mine, "invalid_grant", 400, []string{"code_verifier", verifier + "x"}},
			{"no verifier", mine, "invalid_grant", 400, []string{"code_verifier", ""}},
			{"the challenge as the verifier", mine, "invalid_grant", 400, []string{"code_verifier", challenge(verifier)}},
			{"a verifier that is too short", mine, "invalid_grant", 400, []string{"code_verifier", "short"}},
			{"another client", other, "invalid_grant", 400, nil},
			{"an unknown client", "app_unknown", "invalid_client", 401, nil},
			{"no client", "", "invalid_client", 401, nil},
			{"another redirect URI", mine, "invalid_grant", 400, []string{"redirect_uri", "https://evil.example/"}},
			{"another resource", mine, "invalid_target", 400, []string{"resource", "https://other.example/mcp"}},
			{"another grant type", mine, "unsupported_grant_type", 400, []string{"grant_type", "password"}},
			{"no code", mine, "invalid_grant", 400, []string{"code", ""}},
		} {
			code := in.code(t, mine)
			a := in.exchange(t, tt.client, code, tt.changes...).want(t, tt.status, `"`+tt.want+`"`)
			if a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: may be cached: %v", tt.name, a.header)
			}
			in.clock.Add(store.RateWindow / 12) // the tests are over the limit of a minute
		}
		if apps := in.applications(t); len(apps) != 0 {
			t.Errorf("connected by wrong requests: %+v", apps)
		}
		in.clock.Add(store.RateWindow)

		spoiled := in.code(t, mine)
		in.exchange(t, mine, spoiled, "code_verifier", verifier+"x").want(t, 400)
		in.exchange(t, mine, spoiled).want(t, 400, "invalid_grant") // a wrong attempt ends it

		in.exchange(t, mine, in.code(t, mine), "redirect_uri", "", "resource", "").want(t, 200) // OAuth 2.1 leaves them out

		late := in.code(t, mine)
		in.clock.Add(store.AuthorizationCodeTTL)
		in.exchange(t, mine, late).want(t, 400, "invalid_grant")
	})
}

// A code that is used twice was stolen: the tokens that it gave end.
func TestUsedCodeEndsItsTokens(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		client := in.register(t, "client")
		code := in.code(t, client)
		access := in.exchange(t, client, code).want(t, 200).text(t, "access_token")
		in.listTools(t, access).want(t, 200, "list_inboxes")
		in.exchange(t, client, code).want(t, 400, "invalid_grant")
		in.listTools(t, access).want(t, 401)
		if !strings.Contains(in.log.String(), "used twice") {
			t.Errorf("not in the log:\n%s", in.log)
		}
	})
}

// Of many requests with one code at the same time, one gets tokens, and the others end
// them.
func TestCodeRace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		client := in.register(t, "client")
		code := in.code(t, client)
		responses := make(chan response, 8)
		for range cap(responses) {
			go func() { responses <- in.exchange(t, client, code) }()
		}
		given := 0
		var access string
		for range cap(responses) {
			if a := <-responses; a.status == 200 {
				given++
				access = a.text(t, "access_token")
			}
		}
		if given != 1 {
			t.Fatalf("%d requests got tokens", given)
		}
		in.listTools(t, access).want(t, 401)
	})
}

func TestRefreshTokensRotate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		client, other := in.register(t, "client"), in.register(t, "other")
		access, first := in.connect(t, client)
		in.refresh(t, other, first).want(t, 400, "invalid_grant")
		in.clock.Add(store.AccessTokenTTL)
		in.listTools(t, access).want(t, 401)

		a := in.refresh(t, client, first).want(t, 200, `"scope":"read"`)
		access, second := a.text(t, "access_token"), a.text(t, "refresh_token")
		in.listTools(t, access).want(t, 200)
		for _, wrong := range []string{"", "x", strings.Repeat("A", 52), access} {
			in.refresh(t, client, wrong).want(t, 400, "invalid_grant")
		}
		in.listTools(t, access).want(t, 200)

		in.refresh(t, client, first).want(t, 400, "invalid_grant") // it was replaced
		in.listTools(t, access).want(t, 401)
		in.refresh(t, client, second).want(t, 400, "invalid_grant")
		if len(in.applications(t)) != 0 {
			t.Error("still connected after a refresh token was used twice")
		}

		_, idle := in.connect(t, client)
		in.clock.Add(store.RefreshTokenTTL)
		in.refresh(t, client, idle).want(t, 400, "invalid_grant")
	})
}

// Tokens end with the key: when it expires, and when the person disconnects the
// application, at once on all nodes.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		in := newInstall(t, cfg)
		node := in
		if in.store.Engine() == string(storetest.PostgreSQL) { // SQLite belongs to one process
			node = startNode(t, cfg, in.clock, in.base)
		}
		client := in.register(t, "<b>client</b>")
		access, refresh := in.connect(t, client)
		node.listTools(t, access).want(t, 200)
		id := in.applications(t)[0].ID
		cookie := []string{"Cookie", "postroom_session=" + in.session}
		in.request(t, "GET", "/keys", "", cookie...).want(t, 200, "Connected applications", "&lt;b&gt;client&lt;/b&gt;", "client.example", "/keys/"+id+"/revoke")
		in.request(t, "POST", "/keys/"+id+"/revoke", "application=1", append(cookie, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")...).
			want(t, 303)
		node.listTools(t, access).want(t, 401)
		node.refresh(t, client, refresh).want(t, 400, "invalid_grant")
		if a := in.request(t, "GET", "/keys", "", cookie...); strings.Contains(a.body, "Connected applications") {
			t.Errorf("still listed:\n%s", a.body)
		}

		access, refresh = in.connect(t, client, "expires", "1")
		in.clock.Add(23*time.Hour + 30*time.Minute)
		a := node.refresh(t, client, refresh).want(t, 200)
		if left, _ := a.json(t)["expires_in"].(float64); left < 1799 || left > 1800 {
			t.Errorf("the token lasts %v seconds, and the key 1800", left)
		}
		in.clock.Add(31 * time.Minute)
		node.listTools(t, a.text(t, "access_token")).want(t, 401)
		node.refresh(t, client, a.text(t, "refresh_token")).want(t, 400, "invalid_grant")
		in.listTools(t, access).want(t, 401)
	})
}

func TestRevocationEndpoint(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		client, other := in.register(t, "client"), in.register(t, "other")
		for _, which := range []string{"access", "refresh"} {
			access, refresh := in.connect(t, client)
			token := map[string]string{"access": access, "refresh": refresh}[which]
			in.post(t, "/oauth/revoke", url.Values{"token": {token}, "client_id": {other}}).want(t, 200)
			in.post(t, "/oauth/revoke", url.Values{"token": {"unknown"}, "client_id": {client}}).want(t, 200)
			in.post(t, "/oauth/revoke", url.Values{"token": {token}}).want(t, 400, "invalid_request")
			in.listTools(t, access).want(t, 200)
			in.post(t, "/oauth/revoke", url.Values{"token": {token}, "client_id": {client}}).want(t, 200)
			in.listTools(t, access).want(t, 401)
			in.refresh(t, client, refresh).want(t, 400)
		}
	})
}

// An access token works at the MCP endpoint of its installation, and nowhere else.
func TestTokensAreForMCPOnly(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		in := newInstall(t, cfg)
		access, refresh := in.connect(t, in.register(t, "client"), "inboxes", "all")
		in.request(t, "GET", "/v1/inboxes", "", "Authorization", "Bearer "+access).want(t, 401, "unauthorized")
		in.listTools(t, refresh).want(t, 401)
		in.listTools(t, access).want(t, 200)
		if in.store.Engine() == string(storetest.PostgreSQL) {
			moved := startNode(t, cfg, in.clock, "http://localhost:9999") // another resource
			moved.listTools(t, access).want(t, 401)
		}
	})
}

// What the person chose are the rights of the key.
func TestKeyHasTheConsentedRights(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		client := in.register(t, "client")
		q := in.asks(client, "scope", "read")
		if page := in.page(t, q).want(t, 200).body; strings.Contains(page, "Read and send") {
			t.Errorf("offers more than was asked for:\n%s", page)
		}
		tokens := in.exchange(t, client, in.decide(t, q, "preset", "agent").query(t).Get("code")).want(t, 200, `"scope":"read"`)
		if a := in.listTools(t, tokens.text(t, "access_token")).want(t, 200); strings.Contains(a.body, "send_email") {
			t.Errorf("may send: %s", a.body)
		}
		in.exchange(t, client, in.code(t, client, "preset", "agent", "inboxes", "all", "expires", "")).want(t, 200, `"scope":"read send"`)
		app := in.applications(t)[0]
		if app.InboxIDs != nil || app.ExpiresAt != nil || fmt.Sprint(app.Scopes.V) != "[read send]" {
			t.Errorf("%+v", app)
		}

		foreign := storetest.Inbox(t, in.store)
		for _, wrong := range [][]string{
			{"inbox_ids", ""}, {"inbox_ids", foreign.ID}, {"inbox_ids", "ibx_unknown"}, {"inbox_ids", "", "other_inboxes", foreign.Address}, {"expires", "36500"}, {"expires", "x"},
		} {
			in.decide(t, in.asks(client), wrong...).want(t, 400, `class="fault"`)
		}
	})
}

// Only an approval or a refusal by the person redirects, to an address that the
// application registered. Every error is a page.
func TestErrorsNeverRedirect(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		client := in.register(t, "client")
		for _, wrong := range [][]string{
			{"client_id", "app_unknown"},
			{"client_id", ""},
			{"client_id", "\x00"},
			{"redirect_uri", "https://evil.example/callback"},
			{"redirect_uri", callback + "/more"},
			{"redirect_uri", callback + "?x=1"},
			{"redirect_uri", "HTTPS://client.example/callback"},
			{"redirect_uri", "https://client.example:444/callback"},
			{"redirect_uri", "javascript:alert(1)"},
			{"redirect_uri", ""},
			{"response_type", "token"},
			{"response_type", ""},
			{"code_challenge", ""},
			{"code_challenge", "short"},
			{"code_challenge", challenge(verifier) + "="},
			{"code_challenge_method", "plain"},
			{"code_challenge_method", ""},
			{"resource", "https://other.example/mcp"},
			{"resource", in.base + "/mcp/more"},
			{"state", strings.Repeat("s", 9000)},
		} {
			q := in.asks(client, wrong...)
			for name, a := range map[string]response{"page": in.page(t, q), "form": in.decide(t, q), "refusal": in.decide(t, q, "decision", "deny")} {
				if a.status != 400 || a.header.Get("Location") != "" || !strings.Contains(a.body, "This application cannot connect") {
					t.Errorf("%q, %s: status %d, location %q", wrong, name, a.status, a.header.Get("Location"))
				}
			}
		}
		twice := in.asks(client)
		twice.Add("redirect_uri", "https://evil.example/")
		in.page(t, twice).want(t, 400)

		refusal := in.decide(t, in.asks(client), "decision", "deny").query(t)
		if refusal.Get("error") != "access_denied" || refusal.Get("state") != "a state & more" || refusal.Get("iss") != in.base || refusal.Has("code") {
			t.Errorf("%v", refusal)
		}
		if left, err := in.store.Sweep(t.Context(), "oauth_grants"); err != nil || left != 0 {
			t.Errorf("grants: %d, %v", left, err)
		}
	})
}

// Strangers choose the name and the addresses: nothing of it is markup, and other
// sites can neither frame the page nor send its form.
func TestConsentPageIsSafe(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		name := `<script>alert(1)</script>" onmouseover="x` + "\u202e\u0000\u200b\u3164\u115f\ufe0f\nClaude " + strings.Repeat("very ", 100)
		client := in.register(t, name, callback+"?a=%22%3E%3Cscript%3E")
		q := in.asks(client, "redirect_uri", callback+"?a=%22%3E%3Cscript%3E", "state", `"><script>alert(2)</script>`)
		a := in.page(t, q).want(t, 200, "&lt;script&gt;alert(1)&lt;/script&gt;", "client.example", "not verified")
		for _, wrong := range []string{"<script>alert", "\u202e", "\u200b", "\u3164", "\u115f", "\ufe0f", strings.Repeat("very ", 20)} {
			if strings.Contains(a.body, wrong) {
				t.Errorf("the page has %q", wrong)
			}
		}
		csp := a.header.Get("Content-Security-Policy")
		if a.header.Get("X-Frame-Options") != "DENY" || !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "form-action 'self' https://client.example;") {
			t.Errorf("%v", a.header)
		}
		to := in.decide(t, q).want(t, 303).header.Get("Location")
		if !strings.HasPrefix(to, callback+"?a=%22%3E%3Cscript%3E&") || strings.Contains(to, "<") {
			t.Errorf("redirects to %s", to)
		}

		form := "decision=approve&preset=agent&inboxes=all&" + q.Encode()
		for _, from := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://client.example"}, {"Origin", "null"}} {
			in.request(t, "POST", "/oauth/authorize", form, append(from, "Cookie", "postroom_session="+in.session, "Content-Type", "application/x-www-form-urlencoded")...).
				want(t, 403, "from another site")
		}
		if a := in.request(t, "POST", "/oauth/authorize", form, "Content-Type", "application/x-www-form-urlencoded").want(t, 303); a.header.Get("Location") != "/sign-in" {
			t.Errorf("without a session: %v", a.header)
		}
		a = in.request(t, "GET", "/oauth/authorize?"+q.Encode(), "").want(t, 303)
		if to := a.header.Get("Location"); to != "/sign-in?next="+url.QueryEscape("/oauth/authorize?"+q.Encode()) {
			t.Errorf("sign-in leads back to %s", to)
		}
	})
}

// The redirect leads to where the content security policy lets the form go.
func TestRedirectURIs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		for _, tt := range []struct{ registered, asked, host, action string }{
			{"https://claude.ai/api/mcp/auth_callback", "", "claude.ai", "https://claude.ai"},
			{"https://client.example:8443/cb?x=1", "", "client.example:8443", "https://client.example:8443"},
			{"http://127.0.0.1/callback", "http://127.0.0.1:50123/callback", "this computer (127.0.0.1)", "http://127.0.0.1:50123"},
			{"http://localhost:3000/callback", "http://localhost:3001/callback", "this computer (localhost)", "http://localhost:3001"},
			{"http://[::1]:80/callback", "http://[::1]:50123/callback", "this computer (::1)", "http:"},
			{"cursor://anysphere.cursor-retrieval/oauth/user-1/callback", "", "the program for cursor: links", "cursor:"},
			{"com.example.app:/oauth", "", "the program for com.example.app: links", "com.example.app:"},
		} {
			client := in.register(t, "client", tt.registered)
			asked := tt.asked
			if asked == "" {
				asked = tt.registered
			}
			q := in.asks(client, "redirect_uri", asked)
			a := in.page(t, q).want(t, 200, tt.host)
			if csp := a.header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' "+tt.action+";") {
				t.Errorf("%s: %s", asked, csp)
			}
			if to := in.decide(t, q).want(t, 303).header.Get("Location"); !strings.HasPrefix(to, asked) {
				t.Errorf("%s: redirects to %s", asked, to)
			}
			in.clock.Add(store.RateWindow)
		}
		loopback := in.register(t, "client", "http://127.0.0.1/callback")
		for _, wrong := range []string{"http://127.0.0.1:1/other", "http://localhost/callback", "https://127.0.0.1/callback", "http://127.0.0.1:x/callback", "http://127.0.0.1@evil.example/callback", "http://127.0.0.1:80.evil.example/callback"} {
			in.page(t, in.asks(loopback, "redirect_uri", wrong)).want(t, 400)
		}
		in.clock.Add(store.RateWindow)
		for i, wrong := range []string{
			"http://client.example/callback", "http://192.0.2.1/callback", "http://localhost.evil.example/", "javascript:alert(1)", "JavaScript://client.example/%0aalert(1)",
			"data:text/html,x", "file:///etc/passwd", "ms-msdt:/id", "intent://x", "vbscript:x", "shell:startup", "feed:javascript:alert(1)", "itms-services://x", "hcp://x", "res://x", "smb://x", "x-apple.systempreferences:com.apple", "ms-settings.x:y", "example:/x", ".example:/x", "com..example:/x", "https://user@client.example/", "https://client.example/#fragment", "https://client.example/ x",
			"https://client.example;script-src", "https://client.example,evil.example/", "https://*/", "https://*.example/", "https:///callback", "//client.example/", "/callback", "", "x", "https://сlient.example/",
			"https://client.example/" + strings.Repeat("x", 1000),
		} {
			if i%8 == 7 {
				in.clock.Add(store.RateWindow)
			}
			b, err := json.Marshal(map[string]any{"redirect_uris": []string{callback, wrong}})
			must(t, err)
			in.request(t, "POST", "/oauth/register", string(b)).want(t, 400, "invalid_redirect_uri")
		}
	})
}

// Strangers can register applications. What they send is bounded, in size and in number.
func TestRegistrationIsBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		many, err := json.Marshal(map[string]any{"redirect_uris": make([]string, 11)})
		must(t, err)
		for _, wrong := range []string{"", "[]", "null", `{"redirect_uris":"x"}`, `{"redirect_uris":[]}`, string(many), `{"client_name":1,"redirect_uris":["` + callback + `"]}`,
			"{\"client_name\":\"\u115f\u1160 \u3164\uffa0\u034f\U000e0041\ufe0f\u2800\u200b\",\"redirect_uris\":[\"" + callback + "\"]}"} {
			in.request(t, "POST", "/oauth/register", wrong).want(t, 400)
		}
		in.request(t, "POST", "/oauth/register", `{"client_name":"`+strings.Repeat("x", 17<<10)+`"}`).want(t, 413)
		in.clock.Add(store.RateWindow)
		for range 10 {
			in.register(t, "flood")
		}
		body := `{"redirect_uris":["` + callback + `"]}`
		if a := in.request(t, "POST", "/oauth/register", body).want(t, 429, "temporarily_unavailable"); a.header.Get("Retry-After") == "" {
			t.Errorf("%v", a.header)
		}
		in.request(t, "POST", "/oauth/register", body, "X-Forwarded-For", "192.0.2.1").want(t, 201, "Application at client.example") // another network
		for i := range 289 {                                                                                                         // with the 11 before, what all networks may register in a minute
			in.request(t, "POST", "/oauth/register", body, "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i%200)).want(t, 201)
		}
		if a := in.request(t, "POST", "/oauth/register", body, "X-Forwarded-For", "192.0.2.1").want(t, 429, "temporarily_unavailable"); a.header.Get("Retry-After") == "" {
			t.Errorf("%v", a.header)
		}
		for range 60 {
			in.post(t, "/oauth/token", url.Values{"grant_type": {"x"}})
		}
		in.post(t, "/oauth/token", url.Values{"grant_type": {"x"}}).want(t, 429)
		in.clock.Add(store.RateWindow)
		in.post(t, "/oauth/token", url.Values{"code": {strings.Repeat("x", 17<<10)}}).want(t, 413)
		in.request(t, "POST", "/oauth/token", "code=1&code=2").want(t, 400, "invalid_request")
		in.request(t, "POST", "/oauth/token", "%zz").want(t, 400, "invalid_request")
	})
}

// Maintenance deletes codes that were not used, ended connections and the
// applications that are not connected.
func TestMaintenanceDeletesExpiredRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *install) {
		log := slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))
		sweeper := maintenance.NewSweeper(maintenance.SweeperConfig{Store: in.store, Log: log})
		sweep := func(want int) {
			t.Helper()
			if n, err := sweeper.RunOnce(t.Context()); n != want || err != nil {
				t.Errorf("removed %d, want %d: %v", n, want, err)
			}
		}
		client, unused := in.register(t, "client"), in.register(t, "unused")
		access, refresh := in.connect(t, client)
		in.connect(t, client)
		in.code(t, client)
		sweep(0)
		in.clock.Add(store.AuthorizationCodeTTL)
		sweep(1) // the code
		in.request(t, "DELETE", "/v1/api-keys/"+in.applications(t)[0].ID, "", "Authorization", "Bearer "+in.adminKey(t)).want(t, 200)
		sweep(1) // the grant of the revoked key
		in.clock.Add(store.ClientWaitTTL)
		sweep(1)
		in.exchange(t, unused, "x").want(t, 401, "invalid_client")
		a := in.refresh(t, client, refresh).want(t, 200)
		in.listTools(t, access).want(t, 401)
		in.clock.Add(store.RefreshTokenTTL) // and the key expires
		sweep(1)
		if left := in.applications(t); len(left) != 0 {
			t.Errorf("still connected: %+v", left)
		}
		in.refresh(t, client, a.text(t, "refresh_token")).want(t, 400, "invalid_grant") // the application is still known
		in.clock.Add(store.ClientTTL)
		sweep(1)
		in.refresh(t, client, a.text(t, "refresh_token")).want(t, 401, "invalid_client")
	})
}

// adminKey returns the secret of a key with all permissions.
func (in *install) adminKey(t *testing.T) string {
	t.Helper()
	storetest.Key(t, in.store, in.account, "admin")
	return storetest.Secret("admin")
}
