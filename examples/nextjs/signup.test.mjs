// Signs up by calling the handler of the route, as Next.js does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Postroom } from "postroom";
import { POST } from "./app/api/signup/route.js";

const postroom = new Postroom({ apiKey: "dev", baseUrl: process.env.POSTROOM_URL ?? "http://127.0.0.1:8025" });

test("a new user gets a code", async () => {
  const inbox = await postroom.createInbox();
  const request = new Request("http://localhost/api/signup", { method: "POST", body: JSON.stringify({ email: inbox.address }) });
  assert.equal((await POST(request)).status, 200);
  assert.equal(await inbox.code(), "482913");
});
