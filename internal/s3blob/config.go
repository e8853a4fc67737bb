package s3blob

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// Config selects the bucket and the credentials.
type Config struct {
	// Bucket must exist. Prefix, without slashes at its ends, is prepended to
	// all object names. It may be empty.
	Bucket, Prefix string
	// Endpoint is the URL of the storage: http or https, host and port.
	Endpoint *url.URL
	// Region is the region for signing requests.
	Region string
	// Links is the URL at which clients reach the same storage. If it is nil,
	// the API returns no links to the storage.
	Links *url.URL
	// Credentials authenticate the requests.
	Credentials Credentials
	// Now returns the time for blob keys; nil means time.Now.
	Now func() time.Time
}

// Credentials are an access key, its secret and, for temporary credentials, a
// session token.
type Credentials struct{ AccessKey, SecretKey, SessionToken string }

// Environment reads the credentials from the variables of the AWS tools.
func Environment(vars map[string]string) (Credentials, error) {
	c := Credentials{vars["AWS_ACCESS_KEY_ID"], vars["AWS_SECRET_ACCESS_KEY"], vars["AWS_SESSION_TOKEN"]}
	if c.AccessKey == "" || c.SecretKey == "" {
		return c, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set")
	}
	return c, nil
}

// Scheme is the prefix of bucket addresses.
const Scheme = "s3://"

const defaultRegion = "us-east-1"

// Parse parses the address of a bucket. It must not contain credentials:
//
//	s3://bucket/prefix?endpoint=https://host:port&region=name&links=https://host
//
// The default endpoint is Amazon's for the region. The default region is
// us-east-1, which storage without regions accepts.
func Parse(address string) (Config, error) {
	rest, ok := strings.CutPrefix(address, Scheme)
	u, err := url.Parse("//" + rest)
	if !ok || err != nil {
		return Config{}, errors.New("is not of the form s3://bucket?endpoint=https://host")
	}
	if u.User != nil || u.Fragment != "" {
		return Config{}, errors.New("credentials belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	cfg := Config{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Region: defaultRegion}
	if s3utils.CheckValidBucketNameStrict(cfg.Bucket) != nil {
		return Config{}, fmt.Errorf("%q is not a valid bucket name", cfg.Bucket)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Config{}, errors.New("has parameters that cannot be read")
	}
	for name, values := range q {
		value := values[0]
		switch name {
		case "region":
			cfg.Region = cmp.Or(value, defaultRegion)
		case "endpoint":
			cfg.Endpoint, err = parseServer(value)
		case "links":
			cfg.Links, err = parseServer(value)
		default:
			return Config{}, fmt.Errorf("unknown parameter %q", name)
		}
		if err != nil || len(values) > 1 {
			return Config{}, fmt.Errorf("%s must be one address such as https://host:port", name)
		}
	}
	if cfg.Endpoint == nil {
		cfg.Endpoint = &url.URL{Scheme: "https", Host: "s3.dualstack." + cfg.Region + ".amazonaws.com"}
		if strings.HasPrefix(cfg.Region, "cn-") {
			cfg.Endpoint.Host += ".cn"
		}
	}
	return cfg, nil
}

// parseServer parses the URL of a server: scheme, host and optional port.
func parseServer(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(s, "/"))
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return nil, errors.New("not the address of a server")
	}
	if standard := map[string]string{"http": ":80", "https": ":443"}; strings.HasSuffix(u.Host, standard[u.Scheme]) {
		u.Host = strings.TrimSuffix(u.Host, standard[u.Scheme]) // clients leave it out, and the host is signed
	}
	return u, nil
}
