// A test against a real server that ends and starts again on a POST to RESTART_URL.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Postroom } from "postroom";

const restart = async () => assert.equal((await fetch(process.env.RESTART_URL, { method: "POST" })).status, 200);

test("a restart in the middle of each call loses and repeats nothing", { skip: !process.env.RESTART_URL }, async () => {
  const postroom = new Postroom({ attempts: 1000, retryFor: 120_000 });
  const shop = await postroom.createInbox();
  const inbox = await postroom.createInbox();
  const waiting = inbox.code({ timeout: 120_000 });
  const received = [];
  let opened;
  const open = new Promise((resolve) => (opened = resolve));
  const following = (async () => {
    for await (const event of postroom.events({ inboxId: inbox.id, lastEventId: "evt_0" })) {
      opened(); // the first event is the gap
      if (event.type === "message.received" && received.push(event.id) === 11) return;
    }
  })();
  await Promise.race([open, following]);
  await restart(); // during the wait and the stream

  const subjects = Array.from({ length: 10 }, (_, i) => `Message ${i}`);
  const sends = subjects.map((subject) => shop.send({ to: inbox.address, subject, text: "Hello." }));
  await restart(); // during the sends
  await Promise.all(sends);
  await shop.send({ to: inbox.address, subject: "Message code", text: "Your verification code is 482913." });
  assert.equal(await waiting, "482913");
  await following;
  assert.equal(new Set(received).size, 11);

  const listed = [];
  for await (const message of postroom.list("/v1/inboxes/{inbox_id}/messages", { path: { inbox_id: inbox.id }, query: { limit: 4 } })) {
    if (listed.push(message.subject) === 4) await restart(); // between pages
  }
  assert.deepEqual(listed.sort(), [...subjects, "Message code"].sort());
});
