// Verifies posts with the libraries of others. Each line of the input is a post
// in JSON with the secret, and the time in seconds at which it is looked at; each
// line of the output says which of the libraries take it.
import { createInterface } from "node:readline";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";

const libraries = { standardwebhooks: StandardWebhook, svix: SvixWebhook };

for await (const line of createInterface({ input: process.stdin })) {
  const post = JSON.parse(line);
  Date.now = () => post.at * 1000;
  const headers = {
    "webhook-id": post.id,
    "webhook-timestamp": post.timestamp,
    "webhook-signature": post.signature,
  };
  const taken = {};
  for (const [name, Webhook] of Object.entries(libraries)) {
    try {
      new Webhook(post.with).verify(post.body, headers);
      taken[name] = "";
    } catch (error) {
      taken[name] = error.message;
    }
  }
  process.stdout.write(JSON.stringify(taken) + "\n");
}
