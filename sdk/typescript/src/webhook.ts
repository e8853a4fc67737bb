import { WebhookVerificationError } from "./errors.js";
import type { components } from "./schema.js";

export type Event = components["schemas"]["Event"];

const tolerance = 5 * 60;

/** The headers of a request, in any of the forms that frameworks have. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * Verifies a webhook (https://www.standardwebhooks.com) and returns its event. `body` must be
 * the bytes as received. A signature by any of the secrets is enough, so that secrets can be
 * rotated. An event can arrive more than once, with the same ID each time.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
): Promise<Event> {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  if (!id || !/^\d+$/.test(timestamp)) throw new WebhookVerificationError("webhook-id or webhook-timestamp is missing");
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > tolerance) {
    throw new WebhookVerificationError("the timestamp is more than 5 minutes from now");
  }
  const encoder = new TextEncoder();
  const content = typeof body === "string" ? encoder.encode(body) : body;
  const prefix = encoder.encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(prefix.length + content.length);
  signed.set(prefix);
  signed.set(content, prefix.length);
  const signatures = header(headers, "webhook-signature").split(" ").filter((s) => s.startsWith("v1,"));
  for (const secret of [secrets].flat()) {
    const key = await crypto.subtle.importKey("raw", secretBytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of signatures) {
      const bytes = decodeBase64(signature.slice("v1,".length));
      // verify compares in constant time.
      if (bytes && (await crypto.subtle.verify("HMAC", key, bytes, signed))) {
        return JSON.parse(new TextDecoder().decode(content)) as Event;
      }
    }
  }
  throw new WebhookVerificationError("no signature is by one of the secrets");
}

function header(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return Array.isArray(value) ? value.join(" ") : (value ?? "");
  }
  return "";
}

function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  const bytes = decodeBase64(secret.trim().replace(/^whsec_/, ""));
  if (!bytes?.length) throw new TypeError("postroom: a webhook secret is whsec_ and base64");
  return bytes;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}
