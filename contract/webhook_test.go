package contract_test

import (
	"net/http"
	"strings"
	"testing"
)

// webhookEndpoint has the endpoint fields that the tests read.
type webhookEndpoint struct {
	ID     string   `json:"id"`
	Secret string   `json:"secret"`
	Events []string `json:"events"`
}

// delivery has the delivery fields that the tests read.
type delivery struct {
	ID        string  `json:"id"`
	EventType string  `json:"event_type"`
	Status    string  `json:"status"`
	LastError *string `json:"last_error"`
}

// maxWebhooks is the maximum number of endpoints per account.
const maxWebhooks = 20

func (w *world) webhookIDs(t *testing.T) (ids []string) {
	t.Helper()
	list := w.send(t, w.call("listWebhooks").asking("limit", "100")).want(t, http.StatusOK)
	for _, e := range read[struct{ Data []webhookEndpoint }](t, list).Data {
		ids = append(ids, e.ID)
	}
	return ids
}

// makeRoom deletes the endpoints if the limit is near.
func (w *world) makeRoom(t *testing.T) {
	t.Helper()
	ids := w.webhookIDs(t)
	if len(ids) < maxWebhooks/2 {
		return
	}
	for _, id := range ids {
		w.send(t, w.call("deleteWebhook").at("/v1/webhooks/"+id)).want(t, http.StatusOK)
	}
}

func (w *world) newWebhook(t *testing.T, body string) webhookEndpoint {
	t.Helper()
	return w.newWebhookOf(t, firstKey, body)
}

// newWebhookOf creates an endpoint with a key.
func (w *world) newWebhookOf(t *testing.T, key, body string) webhookEndpoint {
	t.Helper()
	w.makeRoom(t)
	return read[webhookEndpoint](t, w.send(t, w.call("createWebhook").saying(body).as(key)).want(t, http.StatusCreated))
}

// quietWebhook is the body for an endpoint that the scope webhooks:manage alone manages.
func quietWebhook(url string) string {
	return `{"url":"` + url + `","events":["domain.health.degraded"]}`
}

// newDelivery creates a delivery with a test event.
func (w *world) newDelivery(t *testing.T, id string) string {
	t.Helper()
	path := "/v1/webhooks/" + id
	w.send(t, w.call("testWebhook").at(path+"/test")).want(t, http.StatusOK)
	return w.deliveries(t, id, "webhook.test")[0].ID
}

func (w *world) deliveries(t *testing.T, id, typ string) []delivery {
	t.Helper()
	c := w.call("listWebhookDeliveries").at("/v1/webhooks/"+id+"/deliveries").asking("event_type", typ)
	return read[struct{ Data []delivery }](t, w.send(t, c).want(t, http.StatusOK)).Data
}

// webhooks checks that endpoints receive events and can be tested, retried and
// disabled. Private targets are refused everywhere (W1, W12).
func webhooks(t *testing.T, w *world) {
	made := w.newWebhook(t, `{"url":"`+w.receiver+`","events":["message.received","draft.created"]}`)
	path := "/v1/webhooks/" + made.ID
	edit := w.call("updateWebhook").at(path)
	w.receive(t, w.newInbox(t))
	if got := w.deliveries(t, made.ID, "message.received"); len(got) != 1 {
		t.Errorf("deliveries of a received mail: %+v", got)
	}
	retry := w.call("retryWebhookDelivery").at(path + "/deliveries/" + w.newDelivery(t, made.ID) + "/retry")
	w.send(t, retry).want(t, http.StatusAccepted)
	w.send(t, edit.saying(`{"active":false}`)).want(t, http.StatusOK)
	w.send(t, retry).wantCode(t, http.StatusConflict, "webhook_disabled")
	replay := w.call("replayWebhook").at(path + "/replay").saying(`{"since":"2026-01-01T00:00:00Z"}`)
	w.send(t, replay).wantCode(t, http.StatusConflict, "webhook_disabled")
	w.send(t, edit.saying(`{"active":true}`)).want(t, http.StatusOK)
	w.send(t, replay).want(t, http.StatusAccepted)
	log := w.send(t, w.call("listEvents").asking("events", "message.received").asking("limit", "1")).want(t, http.StatusOK)
	if got := read[struct{ Data []webhookEndpoint }](t, log).Data; len(got) != 1 {
		t.Errorf("the log has %d events on its first page", len(got))
	}

	for _, url := range []string{
		"https://10.0.0.1/", "https://[::1]/", "https://2130706433/", "http://169.254.169.254/", "http://192.168.0.1/", "https://u@127.0.0.1/",
	} {
		w.send(t, w.call("createWebhook").saying(`{"url":"`+url+`"}`)).wantCode(t, http.StatusBadRequest, "invalid_request")
		w.send(t, edit.saying(`{"url":"`+url+`"}`)).wantCode(t, http.StatusBadRequest, "invalid_request")
	}
	w.send(t, edit.saying(`{"url":"`+strings.Replace(w.receiver, "127.0.0.1", "127.0.0.2", 1)+`"}`)).want(t, http.StatusOK)
	w.send(t, w.call("testWebhook").at(path+"/test")).want(t, http.StatusOK)

	w.makeRoom(t)
	for range maxWebhooks - len(w.webhookIDs(t)) {
		w.send(t, w.call("createWebhook").saying(`{"url":"`+w.receiver+`"}`)).want(t, http.StatusCreated)
	}
	w.send(t, w.call("createWebhook").saying(`{"url":"`+w.receiver+`"}`)).wantCode(t, http.StatusForbidden, "plan_limit_reached")
}
