import type { components } from "./schema.js";
import type { MessageFilter } from "./wait.js";

export type ErrorCode = components["schemas"]["ErrorCode"];
export type ErrorDetail = components["schemas"]["ErrorDetail"];
type Message = components["schemas"]["Message"];

/** The server refused a request. */
export class PostroomError extends Error {
  override readonly name: string = "PostroomError";

  constructor(
    /** The HTTP status. */
    readonly status: number,
    /** A stable code to act on. A newer server can send codes that this version does not know. */
    readonly code: ErrorCode | (string & {}),
    message: string,
    /** The field or parameter that caused the error, such as `to[1].email`. */
    readonly param?: string,
    /** The ID of the request, for the server's log. */
    readonly requestId?: string,
    /** Every problem found, if there is more than one. */
    readonly details: readonly ErrorDetail[] = [],
    /** How long to wait before another attempt, in milliseconds. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }

  /** Whether the same request can succeed later. */
  get temporary(): boolean {
    return this.code === "rate_limited" || this.code === "idempotency_in_progress" || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** No matching message came in time. The message lists those that came, and why they do not match. */
export class WaitTimeoutError extends Error {
  override readonly name = "WaitTimeoutError";

  constructor(
    message: string,
    /** The messages that came, newest first. */
    readonly messages: readonly Message[],
    readonly filter: MessageFilter,
  ) {
    super(message);
  }
}

/** A webhook is forged, damaged or too old. Respond with 401 and ignore the content. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}

/** Returns the error of a response. */
export async function errorOf(response: Response): Promise<PostroomError> {
  const text = await response.text().catch(() => "");
  let body: Partial<components["schemas"]["ErrorBody"]> = {};
  try {
    body = (JSON.parse(text) as { error?: typeof body }).error ?? {};
  } catch {
    // Not from the server but from a proxy in front of it.
  }
  return new PostroomError(
    response.status,
    body.code ?? "unknown",
    body.message ?? `HTTP status ${response.status}${text ? `: ${text.slice(0, 200)}` : ""}`,
    body.param,
    body.request_id ?? response.headers.get("x-request-id") ?? undefined,
    body.details,
    retryAfter(response.headers.get("retry-after")),
  );
}

/** Reads Retry-After, which has seconds or a date. */
function retryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
