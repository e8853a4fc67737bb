// A test of a sign-up that sends a code by mail. Each test has an address of its own, so
// tests may run at the same time.
import assert from "node:assert/strict";
import test from "node:test";
import nodemailer from "nodemailer";

const api = process.env.POSTROOM_URL ?? "http://127.0.0.1:8025";
const host = process.env.SMTP_HOST ?? "127.0.0.1";
const port = Number(process.env.SMTP_PORT ?? 1025);

// The program under test: it sends a code to whoever signs up.
const transport = nodemailer.createTransport({ host, port });
const signUp = (address) =>
  transport.sendMail({
    from: "Shop <noreply@shop.example>", to: address, subject: "Welcome", text: "Your verification code is 482913.",
  });

async function call(method, path, body) {
  const res = await fetch(api + path, {
    method, body: body && JSON.stringify(body), headers: { "content-type": "application/json", authorization: "Bearer dev" },
  });
  assert.ok(res.ok, `${method} ${path}: ${res.status}`);
  return res.json();
}

test("a new user gets a code", async () => {
  const inbox = await call("POST", "/v1/inboxes", {});
  await signUp(inbox.address);
  const found = await call("GET", `/v1/inboxes/${inbox.id}/messages/wait?view=code&has=code&timeout=30`);
  assert.equal(found.code.otp, "482913");
});
