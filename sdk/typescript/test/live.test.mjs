// Tests against a real server: POSTROOM_URL, POSTROOM_KEY, and FLOWS sign-ups at once.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { Postroom, PostroomError, WaitTimeoutError } from "postroom";
import { fixtures } from "postroom/vitest";
import { postroomTasks } from "postroom/cypress";

const flows = Number(process.env.FLOWS ?? 50);
const postroom = new Postroom();

// run calls a test with the fixtures, as Playwright and Vitest do.
const run = (body) => fixtures.postroom({}, (client) => fixtures.inbox({ postroom: client }, (inbox) => body({ inbox })));

// signUp stands for an app that sends a code.
const signUp = (app, address, code) => app.send({ to: address, subject: "Your sign-in code", text: `Your verification code is ${code}.` });

test(`${flows} sign-ups at once`, async () => {
  const app = await postroom.createInbox();
  await Promise.all(Array.from({ length: flows }, (_, i) => run(async ({ inbox }) => {
    const code = String(100_000 + i);
    await signUp(app, inbox.address, code);
    assert.equal(await inbox.code(), code);
  })));
});

test("each code once, and a failed wait says which messages came", () => run(async ({ inbox }) => {
  const app = await postroom.createInbox();
  await signUp(app, inbox.address, "481516");
  assert.equal(await inbox.code(), "481516");
  await signUp(app, inbox.address, "234200");
  assert.equal(await inbox.code(), "234200");
  await app.send({ to: inbox.address, subject: "Welcome", text: "Hello." });
  await inbox.message({ subject: "welcome" });
  await assert.rejects(inbox.code({ from: "*@shop.example", timeout: 1000 }), (error) => {
    assert(error instanceof WaitTimeoutError);
    assert.match(error.message, /no message with a code from \*@shop\.example/);
    assert.match(error.message, /"Welcome" from .*: the sender is not \*@shop\.example, it has no code/);
    assert.match(error.message, /its code was returned before/);
    assert.equal(error.messages.length, 3);
    return true;
  });
}));

test("lists, errors, raw messages and events", async () => {
  const inbox = await postroom.createInbox();
  const stop = new AbortController();
  const types = [];
  const following = (async () => {
    for await (const event of postroom.events({ inboxId: inbox.id, lastEventId: "evt_0", signal: stop.signal })) {
      types.push(event.object === "event" ? event.type : "gap");
      if (event.type === "message.received") return;
    }
  })();
  for (let i = 0; i < 3; i++) {
    await postroom.post("/v1/inboxes/{inbox_id}/simulate", { path: { inbox_id: inbox.id }, body: { from: { email: "a@b.example", name: "Ana" }, text: `${i}` } });
  }
  let all = 0;
  for await (const message of postroom.list("/v1/inboxes/{inbox_id}/messages", { path: { inbox_id: inbox.id }, query: { limit: 1 } })) {
    assert.equal(message.from.email, "a@b.example");
    if (all++ === 0) assert.match(new TextDecoder().decode(await postroom.raw(message.id)), /^[A-Z][\w-]*: /);
  }
  assert.equal(all, 3);
  await following;
  stop.abort();
  assert(types.includes("message.received"));
  await assert.rejects(postroom.inbox("ibx_none"), (error) => {
    assert(error instanceof PostroomError && error.status === 404 && error.code === "not_found" && error.requestId.startsWith("req_"));
    return true;
  });
  await assert.rejects(postroom.createInbox({ name: "not a name!" }), { status: 400, param: "name" });
  await inbox.delete();
});

test("Cypress tasks and CommonJS", async () => {
  const tasks = postroomTasks();
  const { id, address } = await tasks["postroom:createInbox"]();
  const required = createRequire(import.meta.url)("postroom");
  await signUp(await new required.Postroom().createInbox(), address, "662211");
  assert.equal(await tasks["postroom:code"]({ inboxId: id, subject: "sign-in" }), "662211");
  await tasks["postroom:deleteInbox"](id);
});

test("each operation is a method", async () => {
  const postroom = new Postroom();
  const made = await postroom.templates.create({ name: "hello", subject: "Hello {{name}}", text: "{{#if vip}}Dear {{/if}}{{name}}" });
  assert.equal((await postroom.templates.preview(made.id, { data: { name: "Ana", vip: true } })).text, "Dear Ana");
  const seen = [];
  for await (const t of postroom.templates.list({ limit: 1 })) seen.push(t.id);
  assert.ok(seen.includes(made.id));
  const inbox = await postroom.createInbox();
  assert.equal((await postroom.inboxes.update(inbox.id, { display_name: "Shop" })).display_name, "Shop");
  const from = `shop@${inbox.address.split("@")[1]}`;
  await postroom.emails.send({ from, to: inbox.address, template: "hello", data: { name: "Ben" }, tags: [{ name: "a", value: 1 }] });
  assert.equal((await inbox.message({ timeout: 30_000 })).subject, "Hello Ben");
  await assert.rejects(inbox.code({ timeout: "5" }), { name: "TypeError", message: "timeout must be a number of milliseconds, not a string: 5" });
  await postroom.templates.delete(made.id);
  await inbox.delete();
});
