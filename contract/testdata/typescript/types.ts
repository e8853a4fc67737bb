// What the generated types must let a program tell apart. Nothing here runs: it
// compiles, or the contract says less than it should.
import type { paths, webhooks } from "./postroom.js";
import type {
  Draft, ErrorBody, Event, GetMessageRawResponse, InboxCreate, Message, ReplyToMessageData, SendEmailBatchData,
  SendEmailData, SendMessageData, SendMessageResponse, SimulateMessageData, StreamEventsResponse,
} from "./postroom/index.js";

// A send is answered with the message, or with a draft that waits for approval.
export function idOf(sent: SendMessageResponse): string | null {
  return sent.object === "draft" ? sent.message_id : sent.id;
}

type Sent = paths["/v1/inboxes/{inbox_id}/messages"]["post"]["responses"];
export const created = (m: Sent[201]["content"]["application/json"]): Message["thread_id"] => m.thread_id;
export const held = (d: Sent[202]["content"]["application/json"]): Draft["version"] => d.version;

// The type of an event says what it is about.
export function about(event: Event): string {
  switch (event.type) {
    case "message.received":
      return event.data.extracted?.otp ?? event.data.id;
    case "email.bounced":
      return `${event.data.recipient}: ${event.data.bounce.diagnostic}`;
    case "domain.health.degraded":
      return event.data.degraded_records.map((record) => record.name).join();
    default:
      return event.id;
  }
}

type Received = webhooks["message.received"]["post"]["requestBody"]["content"]["application/json"];
export const code = (event: Received): string | null | undefined => event.data.extracted?.otp;

// A code may be newer than the client.
export const later = (e: ErrorBody): boolean => e.code === "rate_limited" || e.code === "unavailable";
export const newer = (e: ErrorBody): boolean => e.code === "a_code_of_next_year";

// What a request takes is known by name: a policy that does not exist does not compile.
export const strict: InboxCreate = { send_policy: "approval" };
// @ts-expect-error
export const misspelled: InboxCreate = { send_policy: "aproval" };

// The bodies of sends have a type: a number, or a message without a recipient, does not compile.
type Bodies = [
  SendMessageData["body"], ReplyToMessageData["body"], SimulateMessageData["body"], SendEmailData["body"],
  SendEmailBatchData["body"],
];
// @ts-expect-error
export const message: Bodies[0] = 42;
// @ts-expect-error
export const reply: Bodies[1] = 42;
// @ts-expect-error
export const simulated: Bodies[2] = 42;
// @ts-expect-error
export const email: Bodies[3] = 42;
// @ts-expect-error
export const batch: Bodies[4] = 42;
// @ts-expect-error
export const nobody: Bodies[0] = { subject: "Hello", text: "Hi" };
export const complete: Bodies[0] = { to: "ann@example.com", subject: "Hello", text: "Hi" };

type Body<P extends keyof paths> = paths[P] extends { post: { requestBody?: { content: { "application/json": infer B } } } } ? B : never;
// @ts-expect-error
export const byPath: Body<"/v1/inboxes/{inbox_id}/messages"> = 42;

// The raw message is bytes, and the stream carries events.
export const raw = (bytes: GetMessageRawResponse): Blob | File => bytes;
export const streamed = (item: StreamEventsResponse): string | null => (item.object === "event" ? item.id : item.last_event_id);
