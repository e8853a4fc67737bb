// The program under test: a sign-up page that emails a code and asks for it.
import { createServer } from "node:http";
import nodemailer from "nodemailer";

const transport = nodemailer.createTransport({ host: process.env.SMTP_HOST ?? "127.0.0.1", port: Number(process.env.SMTP_PORT ?? 1025) });
const form = (action, label, button) =>
  `<form method="post" action="${action}"><label>${label} <input name="v"></label> <button>${button}</button></form>`;

createServer(async (req, res) => {
  let body = "";
  for await (const chunk of req) body += chunk;
  const value = new URLSearchParams(body).get("v");
  let page = form("/signup", "Email", "Sign up");
  if (req.url === "/signup") {
    await transport.sendMail({
      from: "Shop <noreply@shop.example>", to: value, subject: "Welcome", text: "Your verification code is 482913.",
    });
    page = form("/confirm", "Code", "Confirm");
  }
  if (req.url === "/confirm") page = value === "482913" ? "<h1>Welcome</h1>" : "<h1>Wrong code</h1>";
  res.setHeader("content-type", "text/html").end(page);
}).listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
