package contractcheck_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

// BenchmarkExchange measures what the checker adds to each call of a test.
func BenchmarkExchange(b *testing.B) {
	doc, err := contract()
	if err != nil {
		b.Fatal(err)
	}
	c, err := contractcheck.New(doc)
	if err != nil {
		b.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodGet, "/v1/inboxes?limit=20&cursor=abc", nil)
	body := []byte(`{"data":[` + inbox + `],"has_more":false,"cursor":null}`)
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{
		"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"},
		"Ratelimit-Limit": {"600"}, "Ratelimit-Remaining": {"599"}, "Ratelimit-Reset": {"60"},
	}}
	for b.Loop() {
		if err := c.Exchange(req, nil, res, body); err != nil {
			b.Fatal(err)
		}
	}
}
