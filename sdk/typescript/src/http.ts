import { errorOf, PostroomError } from "./errors.js";
import { idempotentPosts } from "./idempotent.js";

export interface ClientOptions {
  /** The API key. The default is the environment variable POSTROOM_KEY. */
  apiKey?: string;
  /** The address of the server. The default is POSTROOM_URL, or http://127.0.0.1:8080. */
  baseUrl?: string;
  /** The number of attempts of a request that is safe to repeat. */
  attempts?: number;
  /** The time for all attempts of a request, in milliseconds. */
  retryFor?: number;
  /** The time for one attempt, in milliseconds. */
  requestTimeout?: number;
  /** Replaces the global fetch. */
  fetch?: typeof globalThis.fetch;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Makes a POST safe to repeat, also after a restart of your program. The client makes one otherwise. */
  idempotencyKey?: string | undefined;
}

export type Query = Record<string, unknown>;

/** A request by the template of its path. */
export interface Request extends CallOptions {
  method: string;
  path: string;
  params?: Record<string, unknown> | undefined;
  query?: Query | undefined;
  body?: unknown;
  headers?: Record<string, string>;
  /** Replaces requestTimeout. */
  timeout?: number;
  /** Replaces retryFor. */
  retryFor?: number;
}

const firstPause = 500;
const longestPause = 20_000;

/** Sends requests, and repeats them where that is safe. */
export class Transport {
  readonly #key: string;
  readonly #base: string;
  readonly #attempts: number;
  readonly #retryFor: number;
  readonly #timeout: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: ClientOptions) {
    const key = options.apiKey ?? environment("POSTROOM_KEY");
    if (!key) throw new TypeError("postroom: pass apiKey, or set POSTROOM_KEY");
    this.#key = key;
    this.#base = (options.baseUrl ?? environment("POSTROOM_URL") ?? "http://127.0.0.1:8080").replace(/\/+$/, "");
    this.#attempts = options.attempts ?? 4;
    this.#retryFor = options.retryFor ?? 90_000;
    this.#timeout = options.requestTimeout ?? 60_000;
    this.#fetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
  }

  /** Returns the JSON of the response. */
  async json<T>(request: Request): Promise<T> {
    return this.#repeat(request, async () => {
      const { response, done } = await this.#once(request);
      try {
        return (await response.json()) as T;
      } finally {
        done();
      }
    });
  }

  /** Returns the bytes of the response, behind redirects. */
  async bytes(request: Request): Promise<Uint8Array> {
    return this.#repeat(request, async () => {
      const { response, done } = await this.#once(request);
      try {
        return new Uint8Array(await response.arrayBuffer());
      } finally {
        done();
      }
    });
  }

  /** Makes one attempt and returns the response as soon as it begins. */
  async open(request: Request): Promise<Response> {
    const { response, done } = await this.#once(request);
    done();
    return response;
  }

  async #repeat<T>(request: Request, attempt: () => Promise<T>): Promise<T> {
    if (request.method === "POST" && idempotentPosts.has(request.path)) {
      request.idempotencyKey ??= crypto.randomUUID();
    }
    const repeatable = request.method !== "POST" || request.idempotencyKey !== undefined;
    const end = Date.now() + (request.retryFor ?? this.#retryFor);
    for (let n = 1; ; n++) {
      try {
        return await attempt();
      } catch (error) {
        const pause = pauseAfter(error, n);
        if (!repeatable || pause === undefined || n >= this.#attempts || Date.now() + pause > end) throw error;
        request.signal?.throwIfAborted();
        await sleep(pause, request.signal);
      }
    }
  }

  async #once(request: Request): Promise<{ response: Response; done: () => void }> {
    request.signal?.throwIfAborted();
    const late = new AbortController();
    const timeout = request.timeout ?? this.#timeout;
    const timer = setTimeout(() => late.abort(new RequestTimeout(`postroom: no response within ${timeout} ms`)), timeout);
    const stop = () => late.abort(request.signal?.reason);
    request.signal?.addEventListener("abort", stop, { once: true });
    const done = () => {
      clearTimeout(timer);
    };
    const headers: Record<string, string> = { authorization: `Bearer ${this.#key}`, ...request.headers };
    if (request.idempotencyKey !== undefined) headers["idempotency-key"] = request.idempotencyKey;
    const init: RequestInit = { method: request.method, headers, signal: late.signal };
    if (request.body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(request.body);
    }
    try {
      const response = await this.#fetch(this.#base + target(request), init);
      if (!response.ok) throw await errorOf(response);
      return { response, done };
    } catch (error) {
      done();
      request.signal?.throwIfAborted();
      throw late.signal.aborted ? late.signal.reason : error;
    }
  }
}

/** One attempt took too long. */
class RequestTimeout extends Error {
  override readonly name = "TimeoutError";
}

/** Returns the pause before the next attempt, or undefined if the error is final. */
export function pauseAfter(error: unknown, attempt: number): number | undefined {
  const backoff = Math.min(longestPause, firstPause * 2 ** Math.min(attempt - 1, 10));
  const pause = backoff / 2 + (Math.random() * backoff) / 2;
  if (error instanceof PostroomError) return error.temporary ? (error.retryAfter ?? pause) : undefined;
  // fetch reports a failed or interrupted connection as a TypeError, and a cut response as a SyntaxError.
  const lost = error instanceof TypeError || error instanceof SyntaxError || error instanceof RequestTimeout;
  return lost ? pause : undefined;
}

/** Waits, or throws the reason of the signal. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Returns the path of a request with its parameters and query. */
function target(request: Request): string {
  const path = request.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = request.params?.[name];
    if (value === undefined || value === "") throw new TypeError(`postroom: ${name} is missing`);
    return encodeURIComponent(String(value));
  });
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value === undefined || value === null) continue;
    query.append(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return query.size > 0 ? `${path}?${query}` : path;
}

/** Returns an environment variable, where the platform has them. */
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}
