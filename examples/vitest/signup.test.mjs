// Each test has an address of its own, so tests may run at the same time.
import nodemailer from "nodemailer";
import { fixtures } from "postroom/vitest";
import { expect, test as base } from "vitest";

// The client of Postroom reads these; `postroom dev` takes any key.
process.env.POSTROOM_URL ??= "http://127.0.0.1:8025";
process.env.POSTROOM_KEY ??= "dev";

const test = base.extend(fixtures);

// The program under test: it sends a code to each new user.
const transport = nodemailer.createTransport({ host: process.env.SMTP_HOST ?? "127.0.0.1", port: Number(process.env.SMTP_PORT ?? 1025) });
const signUp = (to) =>
  transport.sendMail({ from: "Shop <noreply@shop.example>", to, subject: "Welcome", text: "Your verification code is 482913." });

test("a new user gets a code", async ({ inbox }) => {
  await signUp(inbox.address);
  expect(await inbox.code()).toBe("482913");
});
