package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/smtp/smtptest"
)

func TestDomainShow(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	env := []string{"POSTROOM_MAIL_DOMAIN=agents.example.com", "POSTROOM_HOSTNAME=mx1.example.com"}
	serve(t, data, env...)
	out := waitForSigningKeys(t, data, env)
	for _, want := range []string{
		"agents.example.com. 3600 IN MX 10 mx1.example.com.",
		`agents.example.com. 3600 IN TXT "v=spf1 mx -all"`,
		`_dmarc.agents.example.com. 3600 IN TXT "v=DMARC1; p=quarantine"`,
	} {
		if !hasLine(out, want) {
			t.Errorf("no line %q in\n%s", want, out)
		}
	}
	for _, algorithm := range []string{"rsa", "ed25519"} {
		if n := strings.Count(out, `"v=DKIM1; k=`+algorithm+"; p="); n != 1 {
			t.Errorf("%d %s keys in\n%s", n, algorithm, out)
		}
	}
}

// TestDomainRotate makes further keys once the first ones are published.
func TestDomainRotate(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		dns := smtptest.NewChangingDNS(t)
		s := serve(t, data, append(env, "POSTROOM_RESOLVER="+dns.Addr())...)
		_, made := s.call(t, s.key, http.MethodPost, "/v1/domains", `{"domain":"bob.example"}`)
		if _, stderr, err := runCommand(t, data, env, "domain", "rotate", fmt.Sprint(made["id"])); err == nil || !strings.Contains(stderr, "are not published in DNS yet") {
			t.Errorf("before the first keys are published: %v %s", err, stderr)
		}
		id := fmt.Sprint(s.ownDomain(t, dns, "ann.example")["id"])
		out, stderr, err := runCommand(t, data, env, "domain", "rotate", id)
		if err != nil {
			t.Fatalf("domain rotate: %v\n%s", err, stderr)
		}
		_, got := s.call(t, s.key, http.MethodGet, "/v1/domains/"+id, "")
		all := dkimRecords(got)
		if len(all) != 4 || strings.Count(out, "\n") != 2 {
			t.Fatalf("want %d keys to publish, got\n%s", len(all), out)
		}
		for i, k := range all {
			if shown := strings.Contains(out, fmt.Sprint(k["name"])+". "); shown != (i >= 2) {
				t.Errorf("record %d, %v: shown %t in\n%s", i, k["name"], shown, out)
			}
		}
		waitForSigningKeys(t, data, env)
		for i, want := range []string{"", "the newest keys of postroom.localhost are not published"} {
			out, stderr, err := runCommand(t, data, env, "domain", "rotate")
			if (err == nil) != (want == "") || !strings.Contains(stderr, want) || strings.Count(out, "._domainkey.postroom.localhost. ") != 2-2*i {
				t.Errorf("rotate the keys of the mail domain: %v\n%s%s", err, out, stderr)
			}
		}
		if shown, _, err := runCommand(t, data, env, "domain", "show"); err != nil || strings.Count(shown, "._domainkey.") != 4 {
			t.Errorf("the zone of the mail domain, %v:\n%s", err, shown)
		}
		if _, stderr, err := runCommand(t, data, env, "domain", "rotate", "dom_1"); err == nil || !strings.Contains(stderr, "not found") {
			t.Errorf("rotate the keys of an unknown domain: %v %s", err, stderr)
		}
	})
}

// ownDomain adds a domain, publishes its TXT records, and has it verified.
func (s *served) ownDomain(t *testing.T, dns *smtptest.ChangingDNS, name string) map[string]any {
	t.Helper()
	_, made := s.call(t, s.key, http.MethodPost, "/v1/domains", `{"domain":"`+name+`"}`)
	zones := smtptest.Zones{}
	records, _ := made["dns_records"].([]any)
	for _, r := range records {
		if record, ok := r.(map[string]any); ok && record["type"] == "TXT" {
			zones[fmt.Sprint(record["name"])+"."] = smtptest.Zone{TXT: []string{fmt.Sprint(record["value"])}}
		}
	}
	dns.Set(t, zones)
	_, got := s.call(t, s.key, http.MethodPost, fmt.Sprintf("/v1/domains/%s/verify", made["id"]), "")
	if got["status"] != "verified" {
		t.Fatalf("everything is published, and it is %v", got)
	}
	return made
}

// dkimRecords returns the DKIM records in an API response for a domain.
func dkimRecords(domain map[string]any) []map[string]any {
	var keys []map[string]any
	records, _ := domain["dns_records"].([]any)
	for _, r := range records {
		if record, ok := r.(map[string]any); ok && record["record"] == "DKIM" {
			keys = append(keys, record)
		}
	}
	return keys
}

func TestKeyCommandsBesideARunningService(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		out, stderr, err := runCommand(t, data, env, "key", "create", "--name", "from the shell", "--mode", "restricted", "--scopes", "read")
		if err != nil {
			t.Fatalf("key create: %v\n%s", err, stderr)
		}
		secret := strings.TrimSuffix(out, "\n")
		if !strings.HasPrefix(secret, "sk_restr_") || strings.ContainsAny(secret, " \n") {
			t.Fatalf("key create printed %q, want only the secret", out)
		}
		if status, res := s.call(t, secret, http.MethodGet, "/v1/inboxes", ""); status != http.StatusOK {
			t.Errorf("the new key reads: %d %v", status, res)
		}
		if status, res := s.call(t, secret, http.MethodPost, "/v1/inboxes", "{}"); status != http.StatusForbidden {
			t.Errorf("the new key writes: %d %v, want 403", status, res)
		}
		list, stderr, err := runCommand(t, data, env, "key", "list")
		if err != nil || strings.Contains(list, secret) {
			t.Fatalf("key list: %v\n%s%s", err, list, stderr)
		}
		id := keyID(t, list, "from the shell")
		if out, stderr, err := runCommand(t, data, env, "key", "revoke", id); err != nil || out != "Revoked "+id+".\n" {
			t.Errorf("key revoke: %v\n%s%s", err, out, stderr)
		}
		if status, _ := s.call(t, secret, http.MethodGet, "/v1/inboxes", ""); status != http.StatusUnauthorized {
			t.Errorf("the revoked key: %d, want 401", status)
		}
		if _, stderr, err := runCommand(t, data, env, "key", "revoke", id); err == nil || !strings.Contains(stderr, "not found") {
			t.Errorf("revoke it again: %v %s", err, stderr)
		}
	})
}

// keyID finds the id of the key with this name in what `key list` says.
func keyID(t *testing.T, list, name string) string {
	t.Helper()
	for line := range strings.Lines(list) {
		if strings.Contains(line, name) {
			id, _, _ := strings.Cut(line, " ")
			return id
		}
	}
	t.Fatalf("no key %q in\n%s", name, list)
	return ""
}

func TestKeyCreateChecksItsFlags(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	serve(t, data)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no name", nil, "--name must be 1 to 100 characters"},
		{"an unknown mode", []string{"--name=x", "--mode=real"}, "--mode must be live, test or restricted"},
		{"an unknown scope", []string{"--name=x", "--scopes=read,everything"}, `--scopes: "everything" is not one of * admin`},
		{"a restricted key without scopes", []string{"--name=x", "--mode=restricted"}, "--scopes is required"},
		{"a bad range", []string{"--name=x", "--allowed-ips=10.0.0.300/8"}, "--allowed-ips"},
		{"an unknown inbox", []string{"--name=x", "--inbox-ids=ibx_1"}, "--inbox-ids: ibx_1: inbox: not found"},
		{"an end in the past", []string{"--name=x", "--expires-at=2020-01-01T00:00:00Z"}, "--expires-at must be a time to come"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, stderr, err := runCommand(t, data, nil, append([]string{"key", "create"}, tt.args...)...)
			if err == nil || out != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("%v\n%s%s\nwant %q", err, out, stderr, tt.want)
			}
		})
	}
}

// TestCommandsThatDoNotExist are refused: a script that misspells `key revoke`
// must not go on as if the key were gone.
func TestCommandsThatDoNotExist(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"at the top", []string{"serv"}, `unknown command "serv" for "postroom"`},
		{"a misspelled command", []string{"key", "revok", "key_1"}, `unknown command "revok" for "postroom key": did you mean revoke?`},
		{"of accounts", []string{"account", "remove"}, `unknown command "remove" for "postroom account"`},
		{"of the domain", []string{"domain", "add"}, `unknown command "add" for "postroom domain"`},
		{"a missing argument", []string{"key", "revoke"}, "usage: postroom key revoke ID"},
		{"an argument too many", []string{"key", "revoke", "key_1", "key_2"}, `unexpected argument "key_2"; usage: postroom key revoke ID`},
		{"an argument of a command without any", []string{"key", "list", "key_1"}, `unexpected argument "key_1"; usage: postroom key list`},
		{"after an optional argument", []string{"verify", "a", "b"}, `unexpected argument "b"; usage: postroom verify [FOLDER]`},
		{"one argument too few", []string{"account", "plan", "acc_1"}, "usage: postroom account plan ID PLAN"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, stderr, err := runCommand(t, t.TempDir(), nil, tt.args...)
			if err == nil || out != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("%v\n%s%s\nwant an error with %q", err, out, stderr, tt.want)
			}
		})
	}
	if out, stderr, err := runCommand(t, t.TempDir(), nil); err != nil || strings.Count(out, "\n") > 10 || !strings.Contains(out, "postroom wait ADDRESS --code") {
		t.Errorf("postroom: %v\n%s%s\nwant the commands that matter", err, out, stderr)
	}
	for _, args := range [][]string{{"--help"}, {"key"}, {"account"}, {"domain"}, {"key", "create", "--help"}} {
		if out, stderr, err := runCommand(t, t.TempDir(), nil, args...); err != nil || !strings.Contains(out, "Usage:") {
			t.Errorf("postroom %v: %v\n%s%s\nwant its help", args, err, out, stderr)
		} else if args[0] == "key" && (strings.Contains(out, "--smtp-max-conns-per-ip") || !strings.Contains(out, "postroom serve --help")) {
			t.Errorf("the help of postroom %v lists the settings of the server:\n%s", args, out)
		} else if lines := strings.Count(out, "\n"); len(args) > 1 && lines >= 30 {
			t.Errorf("the help of postroom %v has %d lines", args, lines)
		}
	}
}

func TestInboxCommandsBesideARunningService(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		command := func(args ...string) string {
			t.Helper()
			out, stderr, err := runCommand(t, data, env, args...)
			return fmt.Sprint(out, stderr, err != nil)
		}
		key, _, err := runCommand(t, data, env, "key", "create", "--name", "first")
		if err != nil {
			t.Fatal(err)
		}
		key = strings.TrimSpace(key)
		status, in := s.call(t, key, http.MethodPost, "/v1/inboxes", `{"name":"robot"}`)
		id, address := fmt.Sprint(in["id"]), fmt.Sprint(in["address"])
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, in)
		}
		send := func() int {
			t.Helper()
			status, _ := s.call(t, key, http.MethodPost, "/v1/inboxes/"+id+"/messages", `{"to":"`+address+`","subject":"s","text":"t"}`)
			return status
		}
		if got, want := command("inbox", "suspend", address), id+" ("+address+") is suspended.\nfalse"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if _, in := s.call(t, key, http.MethodGet, "/v1/inboxes/"+id, ""); in["status"] != "suspended" {
			t.Errorf("the inbox is %v", in["status"])
		}
		if status := send(); status != http.StatusForbidden {
			t.Errorf("status of a send: %d", status)
		}
		if got := command("inbox", "suspend", id); !strings.Contains(got, id+" is already suspended") {
			t.Error(got)
		}
		if got, want := command("inbox", "resume", id), id+" ("+address+") is active.\nfalse"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if status := send(); status != http.StatusCreated {
			t.Errorf("status of a later send: %d", status)
		}
		// The operator assigns names that no key may create, to an inbox and as an alias.
		if status, _ := s.call(t, key, http.MethodPost, "/v1/inboxes", `{"name":"postmaster"}`); status != http.StatusBadRequest {
			t.Errorf("status of a reserved name: %d", status)
		}
		const postmaster, dmarc = "postmaster@postroom.localhost", "dmarc@postroom.localhost"
		if got := command("inbox", "assign", "Postmaster@postroom.localhost"); !strings.Contains(got, "("+postmaster+") has the address "+postmaster+".\nfalse") {
			t.Error(got)
		}
		if got, want := command("inbox", "assign", dmarc, "--alias-of", address), id+" ("+address+") has the address "+dmarc+".\nfalse"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		for to, want := range map[string]string{postmaster: postmaster, dmarc: address} {
			_, list := s.call(t, key, http.MethodGet, "/v1/inboxes?address="+to, "")
			if data, _ := list["data"].([]any); len(data) != 1 || fmt.Sprint(data[0].(map[string]any)["address"]) != want {
				t.Errorf("the inbox of %s is %v", to, list)
			}
		}
		for _, args := range [][]string{
			{"inbox", "resume", id}, {"inbox", "suspend", "ibx_none"}, {"inbox", "resume", "missing@postroom.localhost"},
			{"inbox", "assign", postmaster}, {"inbox", "assign", "support"}, {"inbox", "assign", "a+b@postroom.localhost"},
			{"inbox", "assign", "info@other.example"}, {"inbox", "assign", "info@postroom.localhost", "--alias-of", "missing@postroom.localhost"},
		} {
			if got := command(args...); !strings.HasSuffix(got, "true") {
				t.Errorf("%v: %s", args, got)
			}
		}
	})
}

func TestAccountCommandsBesideARunningService(t *testing.T) {
	t.Parallel()
	onEngine(t, func(t *testing.T, data string, env []string) {
		env = append(env, "POSTROOM_PLANS=tiny:inboxes=1,daily=5")
		s := serve(t, data, env...)
		run := func(args ...string) string {
			t.Helper()
			out, stderr, err := runCommand(t, data, env, args...)
			if err != nil {
				t.Fatalf("%v: %v\n%s", args, err, stderr)
			}
			return strings.TrimSuffix(out, "\n")
		}
		refused := func(want string, args ...string) {
			t.Helper()
			if _, stderr, err := runCommand(t, data, env, args...); err == nil || !strings.Contains(stderr, want) {
				t.Errorf("%v: %v %q, want %q", args, err, stderr, want)
			}
		}
		id := run("account", "create", "--name", "growth", "--of-plan", "tiny")
		key := run("key", "create", "--account", id, "--name", "first")
		refused("use --account for another account", "key", "revoke", keyID(t, run("key", "list", "--account", id), "first"))
		usage := func() string {
			t.Helper()
			status, u := s.call(t, key, http.MethodGet, "/v1/usage", "")
			if status != http.StatusOK {
				t.Fatalf("usage: %d %v", status, u)
			}
			sending, _ := u["sending"].(map[string]any)
			return fmt.Sprint(u["plan"], " ", sending["paused"], " ", sending["reason"])
		}
		if got := usage(); got != "tiny false <nil>" {
			t.Errorf("usage: %s", got)
		}
		for i, want := range []string{"201 map[address:", "403 map[error:map[code:plan_limit_reached "} {
			status, res := s.call(t, key, http.MethodPost, "/v1/inboxes", "{}")
			if got := fmt.Sprint(status, " ", res); !strings.HasPrefix(got, want) {
				t.Errorf("inbox %d: %s", i+1, got)
			}
		}
		run("account", "suspend", id, "--reason", "unpaid")
		if got := usage(); got != "tiny true unpaid" {
			t.Errorf("usage of a suspended account: %s", got)
		}
		if list := run("account", "list"); !strings.Contains(list, "tiny         1/1      0/5    0 ") || !strings.Contains(list, "paused: unpaid") {
			t.Errorf("the list is\n%s", list)
		}
		run("account", "suspend", id, "--reason", "still unpaid")
		if got := usage(); got != "tiny true still unpaid" {
			t.Errorf("usage of an account that is suspended again: %s", got)
		}
		run("account", "resume", id)
		run("account", "plan", id, "default")
		if got := usage(); got != "self_hosted false <nil>" {
			t.Errorf("usage after all: %s", got)
		}
		if list := run("key", "list", "--account", id); strings.Count(list, "key_") != 1 {
			t.Errorf("the keys of the account are\n%s", list)
		}
		refused("is not suspended", "account", "resume", id)
		refused(`plan "gold" not found`, "account", "plan", id, "gold")
		refused("not found", "account", "plan", "acc_none", "free")
		refused("not found", "account", "suspend", "acc_none")
		refused("not found", "key", "list", "--account", "acc_none")
		refused("--name must be", "account", "create")
	})
}
