// Scores extractors on messages.jsonl, as docs/benchmark.md describes. Each gets
// the subject and the visible text, and returns one code or nothing.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import * as otpMessage from "otp-message-extractor";

const parseOtp = createRequire(import.meta.url)("parse-otp-message");
const extractOtp = otpMessage.extractOTP;

// The command of cypress-maildev runs in Cypress; these stand in for it.
globalThis.Cypress = { expose: () => "" };
globalThis.cy = { wrap: (value) => value };
const { log } = console;
console.log = () => {};
const { MaildevCommands } = createRequire(import.meta.url)("cypress-maildev/build/maildevCommands.js");
const maildev = new MaildevCommands();
console.log = log;

// A short rule that many programs use: the first number of four to eight digits.
const firstNumber = (text) => text.match(/(?<![\d.,])\d{4,8}(?![\d.,])/)?.[0];

// A longer one: the first such number after a word for a code.
const afterWord = (text) =>
  text.match(/(?:code|otp|pin|passcode|password|kod|código|codice|код|验证码|コード)\D{0,40}(\d{4,8})(?!\d)/iu)?.[1];

const extractors = {
  "Postroom (otp)": (m) => m.otp,
  "otp-message-extractor 0.1.1": (m) => extractOtp(m.text)?.code,
  "parse-otp-message 1.0.2": (m) => parseOtp(m.text)?.code,
  "cypress-maildev 2.0.0": (m) => maildev.maildevGetOTPCode(m.text),
  "first number after a word": (m) => afterWord(m.text),
  "first number of 4 to 8 digits": (m) => firstNumber(m.text),
};

// plain compares codes whatever their spaces, dashes, case and digits' script.
const plain = (code) =>
  [...String(code).normalize("NFKC")]
    .map((c) => (/\p{Nd}/u.test(c) ? digit(c) : c))
    .join("")
    .replace(/[\s\p{Pd}\u200b\u00ad]/gu, "")
    .toUpperCase();

function digit(c) {
  let n = 0;
  while (n < 9 && /\p{Nd}/u.test(String.fromCodePoint(c.codePointAt(0) - n - 1))) n++;
  return String(n);
}

const messages = readFileSync(process.argv[2], "utf8").trim().split("\n").map((line) => JSON.parse(line));
for (const [part, wanted] of [["open", false], ["held out", true]]) {
  const list = messages.filter((m) => m.held_out === wanted);
  console.log(`\n${part}: ${list.length} messages\n\n| extractor | precision | recall | wrong or false codes | all right |\n|---|---|---|---|---|`);
  for (const [name, extract] of Object.entries(extractors)) {
    let right = 0, wrong = 0, expected = 0, exact = 0;
    for (const m of list) {
      let code;
      try {
        code = extract(m);
      } catch {
        code = undefined;
      }
      const ok = Boolean(code && m.codes.some((c) => plain(c) === plain(code)));
      expected += m.codes.length > 0;
      right += ok;
      wrong += Boolean(code) && !ok;
      exact += m.codes.length > 0 ? ok : !code;
    }
    const share = (a, b) => (a / Math.max(b, 1)).toFixed(3);
    console.log(`| ${name} | ${share(right, right + wrong)} | ${share(right, expected)} | ${wrong} | ${share(exact, list.length)} |`);
  }
}
