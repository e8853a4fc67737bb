package web_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// A form that makes a secret redirects to the page that shows it, so that reloading
// that page makes nothing. The page shows the secret once, to the session that sent
// the form, and not for long.
func TestSecretIsShownOnceAfterARedirect(t *testing.T) {
	s := openSite(t)
	v := s.visitAsUser(t)
	hook, err := s.api.CreateWebhook(s.asUser(t), &gen.WebhookCreate{URL: gen.WebhookUrl(newReceiver(t).url)})
	must(t, err)
	_, otherSession := s.newUser(t, "bob@example.com")
	other := s.visitWith(t, otherSession)
	for _, tt := range []struct {
		path   string
		fields []string
		secret string
	}{
		{"/keys", []string{"name", "nightly build", "preset", "full"}, "sk_live_"},
		{"/webhooks", []string{"url", newReceiver(t).url}, "whsec_"},
		{"/webhooks/" + hook.ID + "/rotate", nil, "whsec_"},
	} {
		at := v.post(tt.path, tt.fields).want(t, http.StatusSeeOther).header.Get("Location")
		back := other.get(at).want(t, http.StatusSeeOther).header.Get("Location")
		if v.do(http.MethodHead, at, "", nil).want(t, http.StatusSeeOther); back == at {
			t.Fatalf("%s leads to itself", at)
		}
		v.get(at).want(t, http.StatusOK).has(t, tt.secret)
		v.get(at).want(t, http.StatusSeeOther)
		if a := v.get(back).want(t, http.StatusOK).has(t, "cannot be shown again"); regexp.MustCompile(tt.secret + `[\w+/=-]{20}`).MatchString(a.body) {
			t.Errorf("%s shows the secret again", back)
		}
		late := v.post(tt.path, tt.fields).want(t, http.StatusSeeOther).header.Get("Location")
		s.clock.Add(store.SessionNoteTTL)
		v.get(late).want(t, http.StatusSeeOther)
	}
	keys, err := s.api.ListApiKeys(s.asUser(t), gen.ListApiKeysParams{})
	must(t, err)
	hooks, err := s.api.ListWebhooks(s.asUser(t), gen.ListWebhooksParams{})
	must(t, err)
	if len(keys.Data) != 2 || len(hooks.Data) != 3 {
		t.Errorf("%d keys and %d webhooks, want 2 and 3: one per form", len(keys.Data), len(hooks.Data))
	}
}
