// Starts the app with `next dev` and signs up.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, test } from "node:test";
import { Postroom } from "postroom";

const postroom = new Postroom({ apiKey: "dev", baseUrl: process.env.POSTROOM_URL ?? "http://127.0.0.1:8025" });
const port = process.env.PORT ?? "3000";
const app = spawn(process.execPath, ["node_modules/next/dist/bin/next", "dev", "-p", port, "-H", "127.0.0.1"], { stdio: ["ignore", "inherit", "inherit"] });
after(() => app.kill());

async function signUp(email) {
  for (let attempt = 0; ; attempt++) { // until the app listens
    try {
      return await fetch(`http://127.0.0.1:${port}/api/signup`, { method: "POST", body: JSON.stringify({ email }) });
    } catch (error) {
      if (attempt === 120) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

test("a new user gets a code", async () => {
  const inbox = await postroom.createInbox();
  assert.equal((await signUp(inbox.address)).status, 200);
  assert.equal(await inbox.code(), "482913");
});
