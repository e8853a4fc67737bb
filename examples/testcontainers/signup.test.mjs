// npm install testcontainers nodemailer postroom && node --test
import assert from "node:assert/strict";
import { test } from "node:test";
import nodemailer from "nodemailer";
import { Postroom } from "postroom";
import { GenericContainer, Wait } from "testcontainers";

test("a new user gets a code", async () => {
  const mail = await new GenericContainer("ghcr.io/postroom/postroom")
    .withCommand(["dev"])
    .withExposedPorts(8025, 1025)
    .withWaitStrategy(Wait.forHttp("/health", 8025))
    .start();
  try {
    const postroom = new Postroom({ apiKey: "dev", baseUrl: `http://${mail.getHost()}:${mail.getMappedPort(8025)}` });
    const transport = nodemailer.createTransport({ host: mail.getHost(), port: mail.getMappedPort(1025) });
    const inbox = await postroom.createInbox();
    await transport.sendMail({
      from: "Shop <noreply@shop.example>", to: inbox.address, subject: "Welcome", text: "Your verification code is 482913.",
    });
    assert.equal(await inbox.code(), "482913");
  } finally {
    await mail.stop();
  }
});
