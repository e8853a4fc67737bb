package contract_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/postroom/postroom/smtp/smtptest"
)

// domain has the domain fields that the tests read.
type domain struct {
	ID      string `json:"id"`
	Domain  string `json:"domain"`
	Status  string `json:"status"`
	Records []struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Value    string `json:"value"`
		Required bool   `json:"required"`
	} `json:"dns_records"`
}

// newDomain adds a domain with a unique name.
func (in *install) newDomain(t *testing.T) domain {
	t.Helper()
	return read[domain](t, in.send(t, in.call("createDomain").saying(string(in.domainBody()))).want(t, http.StatusCreated))
}

// domainBody returns a request for a new domain.
func (in *install) domainBody() []byte {
	return fmt.Appendf(nil, `{"domain":"d%d.example.com"}`, in.domains.Add(1))
}

// domains tests a domain whose records are not published.
func domains(t *testing.T, w *world) {
	d := w.newDomain(t)
	create := w.call("createDomain")
	w.send(t, create.saying(`{"domain":"`+d.Domain+`"}`)).wantCode(t, http.StatusConflict, "domain_taken")
	w.send(t, create.saying(`{"domain":"`+mailDomain+`"}`)).wantCode(t, http.StatusConflict, "domain_taken")
	w.send(t, create.saying(`{"domain":"co.uk"}`)).wantCode(t, http.StatusBadRequest, "invalid_request")
	w.send(t, w.call("createInbox").saying(`{"domain":"`+d.Domain+`"}`)).wantCode(t, http.StatusForbidden, "domain_not_verified")
	w.verifyNow(t, d, "pending") // the records are not published
	w.send(t, w.call("deleteDomain").at("/v1/domains/"+d.ID)).want(t, http.StatusOK)
	for id, path := range map[string]string{
		"getDomain": "/v1/domains/" + d.ID, "deleteDomain": "/v1/domains/" + d.ID, "verifyDomain": "/v1/domains/" + d.ID + "/verify",
	} {
		w.send(t, w.call(id).at(path)).wantCode(t, http.StatusNotFound, "not_found")
	}
}

// published returns the records that a domain needs.
func (d domain) published() smtptest.Zones {
	zones := smtptest.Zones{}
	for _, r := range d.Records {
		z := zones[r.Name+"."]
		if r.Type == "MX" {
			z.MX = append(z.MX, net.MX{Host: r.Value + ".", Pref: 10})
		} else {
			z.TXT = append(z.TXT, r.Value)
		}
		zones[r.Name+"."] = z
	}
	return zones
}

// verifyNow verifies a domain and checks its status.
func (in *install) verifyNow(t *testing.T, d domain, status string) {
	t.Helper()
	got := read[domain](t, in.send(t, in.call("verifyDomain").at("/v1/domains/"+d.ID+"/verify")).want(t, http.StatusOK))
	if got.Status != status {
		t.Errorf("looked up, it is %s, want %s: %+v", got.Status, status, got.Records)
	}
}
