// The program under test: it sends a code to each new user.
import nodemailer from "nodemailer";

const transport = nodemailer.createTransport({ host: process.env.SMTP_HOST ?? "127.0.0.1", port: Number(process.env.SMTP_PORT ?? 1025) });

export async function POST(request) {
  const { email } = await request.json();
  await transport.sendMail({
    from: "Shop <noreply@shop.example>", to: email, subject: "Welcome", text: "Your verification code is 482913.",
  });
  return Response.json({ sent: true });
}
