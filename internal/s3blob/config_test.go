package s3blob_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/s3blob"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]struct{ bucket, prefix, endpoint, region, links string }{
		"s3://mail":  {"mail", "", "https://s3.dualstack.us-east-1.amazonaws.com", "us-east-1", ""},
		"s3://mail/": {"mail", "", "https://s3.dualstack.us-east-1.amazonaws.com", "us-east-1", ""},
		"s3://mail.example.com/a/b?region=eu-west-3":                                {"mail.example.com", "a/b", "https://s3.dualstack.eu-west-3.amazonaws.com", "eu-west-3", ""},
		"s3://mail?endpoint=http://s3.local:7070/&links=https://files.example.com":  {"mail", "", "http://s3.local:7070", "us-east-1", "https://files.example.com"},
		"s3://mail?region=cn-north-1":                                               {"mail", "", "https://s3.dualstack.cn-north-1.amazonaws.com.cn", "cn-north-1", ""},
		"s3://mail?endpoint=http://s3.local:80&links=https://files.example.com:443": {"mail", "", "http://s3.local", "us-east-1", "https://files.example.com"},
	} {
		c, err := s3blob.Parse(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		links := ""
		if c.Links != nil {
			links = c.Links.String()
		}
		if c.Bucket != want.bucket || c.Prefix != want.prefix || c.Endpoint.String() != want.endpoint || c.Region != want.region || links != want.links {
			t.Errorf("%s: %+v, endpoint %s, links %s", address, c, c.Endpoint, links)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{ //nolint:gosec // none of these is a secret
		"mail":                          "form s3://bucket",
		"http://mail":                   "form s3://bucket",
		"s3://":                         "not a valid bucket name",
		"s3://Mail":                     "not a valid bucket name",
		"s3://m":                        "not a valid bucket name",
		"s3://key:secret@mail":          "AWS_ACCESS_KEY_ID",
		"s3://mail?endpoint=s3.local":   "endpoint must be one address",
		"s3://mail?endpoint=ftp://host": "endpoint must be one address",
		"s3://mail?endpoint=http://a&endpoint=http://b": "endpoint must be one address",
		"s3://mail?links=https://host/path":             "links must be one address",
		"s3://mail?presign=on":                          `unknown parameter "presign"`,
		"s3://mail?a;b":                                 "cannot be read",
	} {
		_, err := s3blob.Parse(address)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	got, err := s3blob.Environment(map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c"})
	if want := (s3blob.Credentials{AccessKey: "a", SecretKey: "b", SessionToken: "c"}); got != want || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := s3blob.Environment(map[string]string{"AWS_ACCESS_KEY_ID": "a"}); err == nil {
		t.Error("half of the credentials is enough")
	}
}
