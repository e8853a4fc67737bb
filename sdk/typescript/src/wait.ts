import { PostroomError, WaitTimeoutError } from "./errors.js";
import { pauseAfter, sleep, type Transport } from "./http.js";
import type { components } from "./schema.js";

type Message = components["schemas"]["Message"];
type ReceivedCode = components["schemas"]["ReceivedCode"];
type WaitOrCode = components["schemas"]["WaitOrCode"];

/** Selects messages. Without fields it selects all that arrive from a minute ago on. */
export interface MessageFilter {
  /** The From header: an address, `*@domain` or `*@*.domain`. */
  from?: string | undefined;
  /** Part of the subject, ignoring case. */
  subject?: string | undefined;
  /** Only messages received at or after this time. */
  since?: Date | string | undefined;
}

export interface WaitOptions extends MessageFilter {
  /** How long to wait, in milliseconds. The default is one minute. */
  timeout?: number | undefined;
  signal?: AbortSignal | undefined;
}

const path = "/v1/inboxes/{inbox_id}/messages/wait";
const longestCall = 60_000;
// Without `since` the server looks back one minute from each call, so all attempts of the
// first call must end within that minute.
const firstCall = 15_000;
const firstRetries = 40_000;
const mostFailures = 8;

/** Waits for messages of one inbox, and misses none between two calls. */
export class Waiter {
  readonly #filter: MessageFilter;
  #since: string | undefined;
  #after: string | undefined;
  #last: string | undefined;
  #older: components["schemas"]["OlderMatches"] | undefined;
  readonly #seen = new Set<string>();

  constructor(
    private readonly transport: Transport,
    private readonly inboxId: string,
    filter: MessageFilter,
    private readonly has?: "code" | "link",
  ) {
    this.#filter = filter;
    this.#since = filter.since === undefined ? undefined : new Date(filter.since).toISOString();
  }

  /** Returns the next message, or undefined after the timeout. */
  async message(timeout: number, signal?: AbortSignal): Promise<Message | undefined> {
    const found = await this.#next(timeout, signal, undefined);
    return found?.object === "wait_result" ? (found.message ?? undefined) : undefined;
  }

  /** Returns the next code or link, or undefined after the timeout. */
  async code(timeout: number, signal?: AbortSignal): Promise<ReceivedCode | undefined> {
    const found = await this.#next(timeout, signal, "code");
    return found?.object === "code_result" ? (found.code ?? undefined) : undefined;
  }

  async #next(timeout: number, signal: AbortSignal | undefined, view: "code" | undefined): Promise<WaitOrCode | undefined> {
    const end = Date.now() + timeout;
    for (let failures = 0; ; ) {
      const left = end - Date.now();
      if (left <= 0 && failures === 0 && timeout > 0) return undefined;
      const ask = Math.max(1, Math.ceil(Math.min(left, this.#since ? longestCall : firstCall) / 1000));
      const started = Date.now();
      let result: WaitOrCode;
      try {
        result = await this.transport.json<WaitOrCode>({
          method: "GET",
          path,
          params: { inbox_id: this.inboxId },
          query: {
            timeout: ask, from: this.#filter.from, subject: this.#filter.subject, has: this.has, view,
            since: this.#since, after: this.#after,
          },
          timeout: ask * 1000 + 15_000,
          retryFor: Math.min(this.#since ? 90_000 : firstRetries, Math.max(left, 0)),
          signal,
        });
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof PostroomError && error.param === "after" && this.#last) {
          this.#after = undefined; // the message was deleted
          this.#since = this.#last;
          continue;
        }
        const pause = pauseAfter(error, ++failures);
        if (pause === undefined || failures > mostFailures || Date.now() + pause >= end) throw error;
        await sleep(pause, signal);
        continue;
      }
      failures = 0;
      this.#since ??= result.next.since;
      this.#older = result.older;
      const { id, at } = idOf(result);
      if (id === undefined) {
        // A server that stops ends its waits early.
        if (Date.now() - started < ask * 500) await sleep(500, signal);
        if (Date.now() >= end) return undefined;
        continue;
      }
      this.#after = id;
      this.#last = at;
      if (this.#seen.has(id)) continue;
      this.#seen.add(id);
      return result;
    }
  }

  /** Describes a wait that failed: which messages came, and why none matched. */
  async timeoutError(timeout: number, taken: ReadonlySet<string>): Promise<WaitTimeoutError> {
    const wanted = [
      this.has === undefined ? "message" : `message with a ${this.has}`,
      this.#filter.from === undefined ? "" : `from ${this.#filter.from}`,
      this.#filter.subject === undefined ? "" : `with "${this.#filter.subject}" in its subject`,
    ].filter(Boolean).join(" ");
    let text = `no ${wanted} came to inbox ${this.inboxId} within ${timeout} ms`;
    if (this.#older && this.#after === undefined) {
      text += `; ${this.#older.count} matched before ${this.#since}: pass since: "${this.#older.newest}" to include the newest`;
    }
    let messages: Message[] = [];
    try {
      const page = await this.transport.json<components["schemas"]["MessageList"]>({
        method: "GET",
        path: "/v1/inboxes/{inbox_id}/messages",
        params: { inbox_id: this.inboxId },
        query: { direction: "in", limit: 10 },
        timeout: 10_000,
        retryFor: 0,
      });
      messages = page.data;
      text += messages.length === 0 ? "; no message came at all" : "; these messages came:";
      for (const m of messages) text += `\n  "${m.subject}" from ${m.from?.email ?? "an unknown sender"}: ${this.#why(m, taken).join(", ")}`;
    } catch (error) {
      text += `; the client could not list the messages that came: ${error instanceof Error ? error.message : String(error)}`;
    }
    return new WaitTimeoutError(text, messages, this.#filter);
  }

  #why(m: Message, taken: ReadonlySet<string>): string[] {
    const why: string[] = [];
    const { from, subject } = this.#filter;
    if (from !== undefined && !matchesSender(from, m.from?.email ?? "")) why.push(`the sender is not ${from}`);
    if (subject !== undefined && !m.subject.toLowerCase().includes(subject.toLowerCase())) {
      why.push(`the subject does not contain "${subject}"`);
    }
    if (this.#since !== undefined && m.received_at && Date.parse(m.received_at) < Date.parse(this.#since)) {
      why.push(`it came before ${this.#since}`);
    }
    if (this.has === "code" && !m.extracted?.otp) {
      const codes = m.extracted?.codes ?? [];
      why.push(codes.length > 0 ? `it has several possible codes: ${codes.join(", ")}` : "it has no code");
    }
    if (this.has === "link" && !m.extracted?.action_link) why.push("it has no link to follow");
    if (taken.has(m.id)) why.push(`its ${this.has ?? "message"} was returned before`);
    return why.length > 0 ? why : ["it came too late, or an earlier wait returned it"];
  }
}

function idOf(result: WaitOrCode): { id?: string; at?: string } {
  if (result.object === "code_result") {
    return result.code ? { id: result.code.message_id, at: result.code.received_at } : {};
  }
  return result.message ? { id: result.message.id, at: result.message.received_at ?? result.message.created_at } : {};
}

function matchesSender(pattern: string, address: string): boolean {
  const want = pattern.toLowerCase();
  const got = address.toLowerCase();
  if (want.startsWith("*@*.")) return got.endsWith(want.slice(3));
  return want.startsWith("*@") ? got.endsWith(want.slice(1)) : got === want;
}
