import { type CallOptions, type ClientOptions, type Query, Transport } from "./http.js";
import { Resources } from "./resources.js";
import type { components, paths } from "./schema.js";
import { type StreamOptions, streamEvents } from "./stream.js";
import { type MessageFilter, Waiter, type WaitOptions } from "./wait.js";

type Schemas = components["schemas"];

type Method = "get" | "post" | "put" | "patch" | "delete";
/** The paths that have this method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];
type Operation<M extends Method, P extends PathOf<M>> = paths[P] extends Record<M, infer O> ? O : never;
type JSONOf<R> = R extends { content: { "application/json": infer T } } ? T : never;
/** The body of a successful response. */
export type ResponseOf<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { responses: infer R } ? { [S in keyof R]: S extends 200 | 201 | 202 ? JSONOf<R[S]> : never }[keyof R] : never;
type ParametersOf<M extends Method, P extends PathOf<M>, In extends "path" | "query"> =
  Operation<M, P> extends { parameters: infer A } ? (In extends keyof A ? Exclude<A[In], undefined> : never) : never;
/** The body of a request. */
export type BodyOf<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { requestBody?: infer B } ? JSONOf<Exclude<B, undefined>> : never;
/** The query of a request; a list sets the cursor itself. */
export type QueryOf<M extends Method, P extends PathOf<M>> = Omit<ParametersOf<M, P, "query">, "cursor">;
type BodyIsRequired<M extends Method, P extends PathOf<M>> = Operation<M, P> extends { requestBody: unknown } ? true : false;

/** What an operation takes. */
export type RequestOf<M extends Method, P extends PathOf<M>> = CallOptions &
  ([ParametersOf<M, P, "path">] extends [never] ? { path?: never } : { path: ParametersOf<M, P, "path"> }) &
  ([ParametersOf<M, P, "query">] extends [never] ? { query?: never } : { query?: ParametersOf<M, P, "query"> }) &
  ([BodyOf<M, P>] extends [never]
    ? { body?: never }
    : BodyIsRequired<M, P> extends true
      ? { body: BodyOf<M, P> }
      : { body?: BodyOf<M, P> });
type Arguments<R> = Record<string, never> extends R ? [request?: R] : [request: R];

/** The paths of lists that have pages. */
export type ListPath = { [P in PathOf<"get">]: ResponseOf<"get", P> extends { data: unknown[]; cursor: string | null } ? P : never }[PathOf<"get">];
/** An item of a list. */
export type ItemOf<P extends ListPath> = ResponseOf<"get", P> extends { data: (infer T)[] } ? T : never;

/** A message that was sent, or a draft that needs approval. */
export type Sent = Schemas["Message"] | Schemas["Draft"];

/** What the methods for operations call. */
export type Caller = Pick<Postroom, "get" | "post" | "put" | "patch" | "delete" | "list">;

/**
 * A client of a Postroom server. Its fields, such as `templates` and `emails`, have a method for
 * each operation.
 */
export class Postroom extends Resources {
  readonly #transport: Transport;
  readonly #taken = new Set<string>();

  constructor(options: ClientOptions = {}) {
    super();
    this.#transport = new Transport(options);
  }

  get<P extends PathOf<"get">>(path: P, ...args: Arguments<RequestOf<"get", P>>): Promise<ResponseOf<"get", P>> {
    return this.#call("GET", path, args[0]);
  }

  post<P extends PathOf<"post">>(path: P, ...args: Arguments<RequestOf<"post", P>>): Promise<ResponseOf<"post", P>> {
    return this.#call("POST", path, args[0]);
  }

  put<P extends PathOf<"put">>(path: P, ...args: Arguments<RequestOf<"put", P>>): Promise<ResponseOf<"put", P>> {
    return this.#call("PUT", path, args[0]);
  }

  patch<P extends PathOf<"patch">>(path: P, ...args: Arguments<RequestOf<"patch", P>>): Promise<ResponseOf<"patch", P>> {
    return this.#call("PATCH", path, args[0]);
  }

  delete<P extends PathOf<"delete">>(path: P, ...args: Arguments<RequestOf<"delete", P>>): Promise<ResponseOf<"delete", P>> {
    return this.#call("DELETE", path, args[0]);
  }

  /** Yields all items of a list, and fetches pages as needed. */
  async *list<P extends ListPath>(path: P, ...args: Arguments<RequestOf<"get", P>>): AsyncGenerator<ItemOf<P>> {
    const request = (args[0] ?? {}) as { query?: Query };
    for (let cursor: string | undefined; ; ) {
      const page = await this.#call<{ data: ItemOf<P>[]; cursor: string | null }>("GET", path, {
        ...request,
        query: { ...request.query, ...(cursor === undefined ? {} : { cursor }) },
      });
      yield* page.data;
      if (page.cursor === null) return;
      cursor = page.cursor;
    }
  }

  /** Creates an inbox. */
  async createInbox(body: Schemas["InboxCreate"] = {}, options: CallOptions = {}): Promise<Inbox> {
    const data = await this.inboxes.create(body, options);
    return new Inbox(this, data.id, data.address);
  }

  /** Returns an existing inbox. */
  async inbox(id: string, options: CallOptions = {}): Promise<Inbox> {
    const data = await this.inboxes.get(id, options);
    return new Inbox(this, data.id, data.address);
  }

  /** Replies in the thread of a message. */
  reply(messageId: string, body: Schemas["MessageReply"], options: CallOptions = {}): Promise<Sent> {
    return this.messages.reply(messageId, body, options);
  }

  /** Waits for the next matching message. Throws a WaitTimeoutError after the timeout. */
  async waitForMessage(inboxId: string, { timeout = 60_000, signal, ...filter }: WaitOptions = {}): Promise<Schemas["Message"]> {
    const waiter = new Waiter(this.#transport, inboxId, filter);
    checkTimeout(timeout);
    const message = await waiter.message(timeout, signal);
    if (message) return message;
    throw await waiter.timeoutError(timeout, new Set());
  }

  /**
   * Waits for a verification code and returns it. Each code is returned once, so that you can ask
   * for a second code and call again. The scope codes:read is enough.
   */
  async waitForCode(inboxId: string, options: WaitOptions = {}): Promise<string> {
    return (await this.#received(inboxId, "code", options)).otp as string;
  }

  /**
   * Waits for the link of a verification message and returns it. Do not open it automatically
   * unless you know the sender.
   */
  async waitForLink(inboxId: string, options: WaitOptions = {}): Promise<string> {
    return (await this.#received(inboxId, "link", options)).action_link as string;
  }

  async #received(inboxId: string, has: "code" | "link", { timeout = 60_000, signal, ...filter }: WaitOptions): Promise<Schemas["ReceivedCode"]> {
    checkTimeout(timeout);
    const end = Date.now() + timeout;
    const waiter = new Waiter(this.#transport, inboxId, filter, has);
    for (;;) {
      const code = await waiter.code(Math.max(0, end - Date.now()), signal);
      if (!code) throw await waiter.timeoutError(timeout, this.#taken);
      const value = has === "code" ? code.otp : code.action_link;
      const key = `${has} ${code.message_id}`;
      if (value === null || this.#taken.has(key)) continue;
      this.#taken.add(key).add(code.message_id);
      return code;
    }
  }

  /** Yields matching messages, oldest first, each once, until the signal aborts. */
  async *newMessages(inboxId: string, { signal, ...filter }: MessageFilter & { signal?: AbortSignal } = {}): AsyncGenerator<Schemas["Message"]> {
    const waiter = new Waiter(this.#transport, inboxId, filter);
    for (;;) {
      signal?.throwIfAborted();
      const message = await waiter.message(600_000, signal);
      if (message) yield message;
    }
  }

  /** Yields events as they happen, until the signal aborts. A broken stream resumes where it was. */
  events(options: StreamOptions = {}): AsyncGenerator<Schemas["StreamEvent"]> {
    return streamEvents(this.#transport, options);
  }

  /** Downloads a message as received or sent. */
  raw(messageId: string, options: CallOptions = {}): Promise<Uint8Array> {
    return this.#transport.bytes({ method: "GET", path: "/v1/messages/{message_id}/raw", params: { message_id: messageId }, ...options });
  }

  #call<T>(method: string, path: string, request: (CallOptions & { path?: unknown; query?: unknown; body?: unknown }) | undefined): Promise<T> {
    const { path: params, query, ...rest } = request ?? {};
    return this.#transport.json<T>({ method, path, params: params as Query | undefined, query: query as Query | undefined, ...rest });
  }
}

/** Fails at the call, in JavaScript too. */
function checkTimeout(timeout: unknown): void {
  if (typeof timeout !== "number") throw new TypeError(`timeout must be a number of milliseconds, not a ${typeof timeout}: ${String(timeout)}`);
}

/** An inbox of a program. */
export class Inbox {
  constructor(
    readonly client: Postroom,
    readonly id: string,
    readonly address: string,
  ) {}

  /** Waits for a verification code. */
  code(options?: WaitOptions): Promise<string> {
    return this.client.waitForCode(this.id, options);
  }

  /** Waits for the link of a verification message. */
  link(options?: WaitOptions): Promise<string> {
    return this.client.waitForLink(this.id, options);
  }

  /** Waits for the next message. */
  message(options?: WaitOptions): Promise<Schemas["Message"]> {
    return this.client.waitForMessage(this.id, options);
  }

  /** Yields the messages of the inbox, newest first. */
  messages(): AsyncGenerator<Schemas["Message"]> {
    return this.client.messages.listInbox(this.id);
  }

  /** Sends a message from this inbox. */
  send(body: Schemas["MessageSend"], options: CallOptions = {}): Promise<Sent> {
    return this.client.messages.send(this.id, body, options);
  }

  /** Deletes the inbox with its messages. */
  async delete(): Promise<void> {
    await this.client.inboxes.delete(this.id);
  }
}
