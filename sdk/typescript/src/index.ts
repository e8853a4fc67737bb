export { Inbox, type ListPath, type PathOf, Postroom, type RequestOf, type ResponseOf, type Sent } from "./client.js";
export { type ErrorCode, type ErrorDetail, PostroomError, WaitTimeoutError, WebhookVerificationError } from "./errors.js";
export type { CallOptions, ClientOptions } from "./http.js";
export type { components, paths } from "./schema.js";
export type { StreamOptions } from "./stream.js";
export type { MessageFilter, WaitOptions } from "./wait.js";
export { type Event, verifyWebhook, type WebhookHeaders } from "./webhook.js";
