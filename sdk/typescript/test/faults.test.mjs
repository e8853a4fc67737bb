// Tests against a server that fails on purpose.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { Postroom, verifyWebhook, WebhookVerificationError } from "postroom";

// serve calls the next of the handlers for each request.
async function serve(t, ...handlers) {
  const requests = [];
  const server = createServer((request, response) => {
    requests.push({ method: request.method, url: request.url, headers: request.headers });
    const handler = handlers.shift();
    handler ? handler(response, request) : response.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { requests, server, client: new Postroom({ apiKey: "sk_test", baseUrl: `http://127.0.0.1:${server.address().port}/` }) };
}

const json = (status, body, headers = {}) => (response) => {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
};
const refuse = (status, code, headers) => json(status, { error: { code, message: "no", request_id: "req_1" } }, headers);
const hangUp = (response) => response.destroy();
const cutOff = (response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": 100 });
  response.write('{"id": ');
  setImmediate(() => response.destroy());
};
const inbox = { id: "ibx_1", address: "a@b.example" };

test("429 and 503 with Retry-After, and broken connections", async (t) => {
  const { client, requests } = await serve(t, refuse(429, "rate_limited", { "retry-after": "1" }), refuse(503, "unavailable", { "retry-after": "0" }), json(201, inbox));
  const start = Date.now();
  assert.equal((await client.createInbox()).id, "ibx_1");
  assert(Date.now() - start >= 1000, "the client did not wait as Retry-After says");
  const keys = new Set(requests.map((r) => r.headers["idempotency-key"]));
  assert(requests.length === 3 && keys.size === 1 && !keys.has(undefined));

  const broken = await serve(t, hangUp, cutOff, json(200, inbox));
  assert.equal((await broken.client.inbox("ibx_1")).id, "ibx_1");
});

test("what is not safe is not repeated", async (t) => {
  const { client, requests } = await serve(t, hangUp, json(201, {}));
  await assert.rejects(client.post("/v1/webhooks", { body: { url: "https://a.example", events: ["message.received"] } }));
  assert.equal(requests.length, 1);
  const limited = await serve(t, refuse(429, "daily_limit_reached"));
  await assert.rejects(limited.client.createInbox(), { code: "daily_limit_reached", temporary: false });
  assert.equal(limited.requests.length, 1);
});

test("a wait goes on while the server restarts", async (t) => {
  const next = { since: "2026-01-01T00:00:00.000Z", after: null };
  const code = { otp: "482913", message_id: "msg_1", received_at: "2026-01-01T00:00:01.000Z" };
  const { client, requests } = await serve(
    t,
    json(200, { object: "code_result", timed_out: true, code: null, next }),
    hangUp, refuse(503, "unavailable", { "retry-after": "0" }), hangUp, hangUp, hangUp,
    json(200, { object: "code_result", timed_out: false, code, next }),
  );
  assert.equal(await client.waitForCode("ibx_1"), "482913");
  assert.equal(requests.length, 7);
  assert(requests.slice(1).every((r) => r.url.includes("since=2026-01-01T00%3A00%3A00.000Z")));
});

test("a stream resumes after its last event", async (t) => {
  const event = (n) => `id: evt_${n}\nevent: x\ndata: {"object":"event","id":"evt_${n}","type":"x","created_at":"2026-01-01T00:00:00.000Z"}\n\n`;
  const stream = (text) => (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text, () => setImmediate(() => response.destroy()));
  };
  const { client, requests } = await serve(t, stream(`retry: 10\n\n${event(1)}: ping\n\n${event(2).slice(0, 30)}`), hangUp, stream(event(2)));
  const got = [];
  for await (const e of client.events()) {
    got.push(e.id);
    if (got.length === 2) break;
  }
  assert.deepEqual(got, ["evt_1", "evt_2"]);
  assert.deepEqual(requests.map((r) => r.headers["last-event-id"]), [undefined, "evt_1", "evt_1"]);
});

test("webhooks are verified", async () => {
  const key = Buffer.from("0123456789abcdef01234567");
  const secret = `whsec_${key.toString("base64")}`;
  const body = '{"id":"evt_1"}';
  const at = String(Math.floor(Date.now() / 1000));
  const sign = (t) => `v1,${createHmac("sha256", key).update(`evt_1.${t}.${body}`).digest("base64")}`;
  const headers = { "Webhook-Id": "evt_1", "webhook-timestamp": at, "webhook-signature": `v1,bad ${sign(at)}` };
  assert.equal((await verifyWebhook(body, headers, ["whsec_b3RoZXI=", secret])).id, "evt_1");
  assert.equal((await verifyWebhook(Buffer.from(body), new Headers(headers), secret)).id, "evt_1");
  const old = String(at - 301);
  for (const [b, h] of [
    [`${body} `, headers],
    [body, { ...headers, "webhook-signature": "v1,bad" }],
    [body, { ...headers, "webhook-timestamp": old, "webhook-signature": sign(old) }],
    [body, {}],
  ]) {
    await assert.rejects(verifyWebhook(b, h, secret), WebhookVerificationError);
  }
});
