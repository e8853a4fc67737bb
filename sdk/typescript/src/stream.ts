import { PostroomError } from "./errors.js";
import { pauseAfter, sleep, type Transport } from "./http.js";
import type { components } from "./schema.js";

type Event = components["schemas"]["Event"];
type StreamGap = components["schemas"]["StreamGap"];

export interface StreamOptions {
  /** Only events of this inbox. */
  inboxId?: string;
  /** Only events of these types. */
  types?: readonly components["schemas"]["EventType"][];
  /** Resumes after this event. The server remembers events for 24 hours. */
  lastEventId?: string;
  signal?: AbortSignal;
}

// The server sends something every 20 seconds.
const silence = 60_000;
const attempts = 25;
const longestPause = 30_000;
const largestEvent = 4 << 20;
// No event has this ID, so the server replays all that it remembers.
const unknownEvent = "evt_0";

/**
 * Yields events in order, each once, until the signal aborts. A broken stream resumes where it
 * was. If the server no longer knows that position, a StreamGap comes first.
 */
export async function* streamEvents(transport: Transport, options: StreamOptions): AsyncGenerator<Event | StreamGap> {
  let last = options.lastEventId;
  let opened: number | undefined; // by the clock of the server
  let retry = 3000;
  for (let failures = 0; ; ) {
    const replaying = last === undefined && opened !== undefined;
    const connection = new AbortController();
    const stop = () => connection.abort(options.signal?.reason);
    options.signal?.throwIfAborted();
    options.signal?.addEventListener("abort", stop, { once: true });
    try {
      const response = await transport.open({
        method: "GET",
        path: "/v1/events/stream",
        query: { inbox_id: options.inboxId, events: options.types?.join(",") },
        headers: { accept: "text/event-stream", ...(last ?? (replaying ? unknownEvent : "")) ? { "last-event-id": last ?? unknownEvent } : {} },
        signal: connection.signal,
      });
      opened ??= Date.parse(response.headers.get("date") ?? "") || Date.now();
      failures = 0;
      for await (const frame of frames(response, connection)) {
        retry = frame.retry ?? retry;
        if (frame.data === "") continue;
        const item = JSON.parse(frame.data) as Event | StreamGap;
        if (frame.id) last = frame.id;
        const at = Date.parse(item.object === "event" ? item.created_at : item.replayed_from);
        // After a break before the first event, the replay has events from before the stream.
        if (replaying && (item.object === "event" ? at < opened : at <= opened)) continue;
        yield item;
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      const final = error instanceof PostroomError ? !error.temporary : error instanceof SyntaxError;
      if (final || opened === undefined || failures >= attempts) throw error;
      if (failures > 0) retry = Math.min(pauseAfter(error, failures) ?? retry, longestPause);
    } finally {
      options.signal?.removeEventListener("abort", stop);
      connection.abort();
    }
    failures++;
    await sleep(retry, options.signal);
  }
}

interface Frame {
  id?: string;
  data: string;
  retry?: number;
}

/** Parses server-sent events. A frame that is cut off by the end of the stream is dropped. */
async function* frames(response: Response, connection: AbortController): AsyncGenerator<Frame> {
  if (!response.body) throw new TypeError("postroom: the stream has no body");
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let frame: Frame = { data: "" };
  let lines: string[] = [];
  for (;;) {
    const alarm = setTimeout(() => connection.abort(new TypeError("postroom: the stream went silent")), silence);
    const { done, value } = await reader.read().finally(() => clearTimeout(alarm));
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const parts = text.split(/\r\n|\n|\r(?!$)/);
    text = parts.pop() ?? "";
    if (text.length > largestEvent) throw new SyntaxError("postroom: an event is longer than 4 MB");
    for (const line of parts) {
      if (line === "") {
        yield { ...frame, data: lines.join("\n") };
        frame = { data: "" };
        lines = [];
        continue;
      }
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const content = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") lines.push(content);
      if (field === "id") frame.id = content;
      if (field === "retry" && /^\d+$/.test(content)) frame.retry = Number(content);
    }
  }
}
