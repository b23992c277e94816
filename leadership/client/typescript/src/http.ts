import type { Clock } from "./clock.ts";
import {
  InvalidArgument, OutcomeUnknown, PermissionDenied, RateLimited, RegentError, StoreUnavailable, Unauthenticated, invalid,
  ofProblem, type Details, type Problem,
} from "./errors.ts";
import { linked, onAbort } from "./wait.ts";

/** A credential, such as an ID token: a text, or a function that is asked before each request. */
export type Credential = string | ((signal: AbortSignal) => string | Promise<string>);

/** @internal One call of the API. */
export interface Call {
  /** For errors. */
  name: string;
  method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Beginning with /v1; its parts are valid names, which need no escaping. */
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string | undefined>;
  /** Sent as JSON; none if undefined. */
  body?: unknown;
  /** The call may change something, so its outcome can be unknown. */
  changes: boolean;
  /** Milliseconds that the server is asked to wait. */
  wait?: number;
  /** Milliseconds for the whole exchange, the body of the reply included; 30 s and the wait by default. */
  limit?: number;
  /** Bytes of a reply that are read; 1 MiB by default. */
  maxReply?: number;
  signal?: AbortSignal | undefined;
}

/** @internal */
export interface Reply<T> {
  body: T;
  headers: Headers;
}

/** @internal What Http needs to know. */
export interface HttpOptions {
  server: string;
  insecure: boolean;
  credential: Credential | undefined;
  fetch: typeof fetch;
  clock: Clock;
}

const contentType = "application/json";
const problemType = "application/problem+json";
/** @internal Milliseconds for an exchange in which the server is not asked to wait. */
export const defaultLimit = 30_000;
const defaultMaxReply = 1 << 20;
/** How many characters of a reply that is not Regent's an error shows. */
const maxStart = 256;

/** @internal Exchanges requests and replies with one server. It follows no redirect: a request has a key in it. */
export class Http {
  readonly server: string;
  readonly #credential: Credential | undefined;
  readonly #fetch: typeof fetch;
  readonly #clock: Clock;

  constructor(options: HttpOptions) {
    this.server = parseServer(options.server, options.insecure);
    const { credential } = options;
    if (credential !== undefined && typeof credential !== "string" && typeof credential !== "function") throw invalid("credential: it is a text, or a function that returns one");
    this.#credential = credential;
    this.#fetch = options.fetch;
    this.#clock = options.clock;
  }

  /**
   * Makes a call and returns its reply. Throws the signal's reason if it was aborted, and otherwise
   * a RegentError: OutcomeUnknown if the call may have been carried out without a reply.
   */
  async call<T>(k: Call): Promise<Reply<T>> {
    const limited = new Limited(k.signal, this.#clock, k.limit ?? defaultLimit + (k.wait ?? 0));
    try {
      const response = await this.#send(k, limited);
      const text = await this.#read(k, response, limited);
      return { body: answer<T>(k, response, text), headers: response.headers };
    } finally {
      limited.end();
    }
  }

  /** Opens a stream. The caller reads its body, bounds its events, and aborts the signal at its end. */
  async open(k: Call): Promise<Response> {
    const limited = new Limited(k.signal, this.#clock, k.limit ?? defaultLimit);
    try {
      const headers = { ...k.headers, "accept-encoding": "identity" }; // compression could hold events back
      const response = await this.#send({ ...k, headers }, limited, "text/event-stream");
      if (response.status === 200 && mediaType(response) === "text/event-stream") return response;
      const text = await this.#read(k, response, limited);
      throw refusal(k, response, text);
    } finally {
      limited.release();
    }
  }

  async #send(k: Call, limited: Limited, accept = contentType): Promise<Response> {
    const headers = new Headers({ accept });
    for (const [name, value] of Object.entries(k.headers ?? {})) if (value) headers.set(name, value);
    await this.#authorize(k, headers, limited);
    const init: RequestInit = { method: k.method ?? "POST", headers, redirect: "manual", signal: limited.signal };
    if (k.body !== undefined) {
      headers.set("content-type", contentType);
      init.body = JSON.stringify(k.body);
    }
    try {
      return await this.#fetch(this.#url(k), init);
    } catch (e) {
      limited.check();
      const code = codeOf(e);
      if (distrusts(code)) {
        throw new RegentError(`${k.name}: the server's certificate is not trusted: ${reasonOf(e)} (${code}); nothing was sent. Name the file of its authority in NODE_EXTRA_CA_CERTS`, { cause: e });
      }
      throw unanswered(k, !limited.over && notSent(e) ? false : k.changes, limited.over ? "no answer in time" : "no answer", e);
    }
  }

  #url(k: Call): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(k.query ?? {})) if (value !== undefined) query.set(name, String(value));
    const text = query.toString();
    return this.server + k.path + (text && "?" + text);
  }

  async #authorize(k: Call, headers: Headers, limited: Limited): Promise<void> {
    if (this.#credential === undefined) return;
    let token: string;
    try {
      token = typeof this.#credential === "string" ? this.#credential : await limited.within(Promise.resolve(this.#credential(limited.signal)));
    } catch (e) {
      limited.check();
      const of = isMissing(e) ? Unauthenticated : StoreUnavailable; // a file that is missing stays so
      throw new of(`${k.name}: there is no credential to identify the caller: ${reasonOf(e)} (${of.code})`, { cause: e });
    }
    // fetch would repeat a token that it cannot send
    if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token)) throw invalid(`${k.name}: the credential is no text, is empty or has characters that cannot be sent`);
    headers.set("authorization", "Bearer " + token);
  }

  /** Reads the whole body, as far as it is allowed. */
  async #read(k: Call, response: Response, limited: Limited): Promise<string> {
    const most = k.maxReply ?? defaultMaxReply;
    const parts: Uint8Array[] = [];
    let size = 0;
    const reader = response.body?.getReader();
    try {
      while (reader && size <= most) {
        const { done, value } = await limited.within(reader.read());
        if (done) break;
        parts.push(value);
        size += value.length;
      }
    } catch (e) {
      reader?.cancel().catch(() => {});
      limited.check();
      throw unanswered(k, k.changes, limited.over ? "no complete answer in time" : "the answer was cut off", e);
    }
    if (size > most) throw misread(k, `it is larger than ${most} bytes`);
    return Buffer.concat(parts).toString("utf8");
  }
}

/** A signal that is aborted with another one, or when the time is over. */
class Limited {
  readonly #controller: AbortController;
  readonly #outer: AbortSignal | undefined;
  readonly #cancel: () => void;
  readonly #leave: () => void;
  /** The time is over. */
  over = false;

  constructor(outer: AbortSignal | undefined, clock: Clock, limit: number) {
    this.#outer = outer;
    ({ controller: this.#controller, leave: this.#leave } = linked(outer));
    this.#cancel = clock.timer(limit, () => {
      this.over = true;
      this.#controller.abort(new DOMException("the time for this exchange is over", "TimeoutError"));
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Throws the reason of the outer signal, if that was aborted. */
  check(): void {
    this.#outer?.throwIfAborted();
  }

  /** Waits for the promise, but not after the signal is aborted. */
  within<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const abort = (): void => reject(this.signal.reason);
      if (this.signal.aborted) abort();
      promise.then(resolve, reject).finally(onAbort(this.signal, abort));
    });
  }

  /** Ends the time limit, but not the attention to the outer signal. */
  release(): void {
    this.#cancel();
  }

  /** Ends the exchange, with the connection if its body was not read to its end. */
  end(): void {
    this.#cancel();
    this.#leave();
    this.#controller.abort();
  }
}

/** Reports whether fetch failed before it had a connection. */
function notSent(e: unknown): boolean {
  const connecting = (e: unknown): boolean => {
    const { code, syscall, errors, message } = (e ?? {}) as { code?: string; syscall?: string; errors?: unknown[]; message?: string };
    if (Array.isArray(errors) && errors.length > 0) return errors.every(connecting);
    if (syscall === "connect" || syscall === "getaddrinfo" || code === "UND_ERR_CONNECT_TIMEOUT") return true;
    return code === "ECONNREFUSED" || code === "ConnectionRefused" || /: client error \(Connect\): /.test(message ?? ""); // Bun, and Deno
  };
  return connecting((e as { cause?: unknown } | undefined)?.cause ?? e);
}

/** Returns the code of what made fetch fail; "" if it has none. */
function codeOf(e: unknown): string {
  const { code } = ((e as { cause?: unknown } | undefined)?.cause ?? e ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : "";
}

/** Reports whether the code is of a certificate that is not trusted, and will not be. */
function distrusts(code: string): boolean {
  return /^(ERR_TLS_CERT_|CERT_|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF))|SELF_SIGNED_CERT|^INVALID_CA$|^HOSTNAME_MISMATCH$/.test(code);
}

function isMissing(e: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "EISDIR", "EACCES"].includes(codeOf(e));
}

/** Says why fetch, or a credential, has failed. */
function reasonOf(e: unknown): string {
  const last = (e as { cause?: unknown } | undefined)?.cause ?? e;
  const { message, code } = (last ?? {}) as { message?: string; code?: string };
  return message || code || String(last);
}

/** Returns the error of a call that has no answer. */
function unanswered(k: Call, changes: boolean, what: string, cause: unknown): RegentError {
  const of = changes ? OutcomeUnknown : StoreUnavailable;
  return new of(`${k.name}: ${what}: ${reasonOf(cause)} (${of.code})`, { cause });
}

/** @internal Returns the error of a success that cannot be read or does not answer the call. */
export function misread(k: Pick<Call, "name" | "changes">, what: string): RegentError {
  const of = k.changes ? OutcomeUnknown : StoreUnavailable;
  return new of(`${k.name}: the reply does not answer this call: ${what} (${of.code})`);
}

function mediaType(response: Response): string {
  return (response.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
}

/** Returns what a reply says, or throws what it refuses with. */
function answer<T>(k: Call, response: Response, text: string): T {
  if (response.status !== 200 || mediaType(response) !== contentType) throw refusal(k, response, text);
  const body = parse(text);
  if (!isObject(body)) throw misread(k, "it is no JSON object");
  return body as T;
}

function refusal(k: Call, response: Response, text: string): RegentError {
  const body = mediaType(response) === problemType ? parse(text) : undefined;
  if (isObject(body) && typeof body.code === "string" && body.code) return ofProblem(k.name, body as unknown as Problem);
  return foreign(k, response, text);
}

/**
 * Returns the error of a reply that is not from Regent: from a proxy or a platform's front end. One
 * that refuses has not forwarded the request; after an error of its own, or a success, it may have.
 */
function foreign(k: Call, response: Response, text: string): RegentError {
  const { status } = response;
  const lost = k.changes ? OutcomeUnknown : StoreUnavailable;
  const of =
    status === 401 ? Unauthenticated
    : status === 403 ? PermissionDenied
    : status === 429 ? RateLimited
    : status === 408 || status >= 500 || (status >= 200 && status < 300) ? lost
    : RegentError;
  const seconds = response.headers.get("retry-after") ?? "";
  const details: Details = { retryAfter: /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : 0 };
  const redirect = status >= 300 && status < 400 || response.type === "opaqueredirect" ? "; redirects are not followed: call the server itself" : "";
  const https = /HTTP request (was sent )?to (an )?HTTPS (server|port)/.test(text) ? "; call it with https://" : "";
  const start = JSON.stringify(withoutSecrets(text).slice(0, maxStart));
  return new of(`${k.name}: HTTP status ${status} with ${start} is not a reply of Regent${redirect}${https}`, details);
}

/** Removes from a foreign reply what it may repeat of the request. */
function withoutSecrets(text: string): string {
  return text.replace(/[A-Za-z0-9._~+/=-]{32,}/g, "[…]");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @internal */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Checks and returns the server's address without a slash at its end. No error repeats it: it may contain a password. */
function parseServer(server: string, insecure: boolean): string {
  if (!/^https?:\/\//i.test(server)) throw invalid("the server's address must begin with http:// or https://, as in http://127.0.0.1:8080");
  let url: URL;
  try {
    url = new URL(server);
  } catch {
    throw invalid("the server's address is not a URL");
  }
  if (url.username || url.password || /^[^/?#]*\/\/[^/?#]*@/.test(server)) throw invalid("the server's address must not contain a user or a password");
  if (/[?#]/.test(server)) throw invalid("the server's address must not contain ? or #");
  if (url.protocol === "http:" && !insecure && !isLoopback(url.hostname)) {
    throw new InvalidArgument(
      "the server is on another machine, and over http:// keys and credentials can be read on the way; use https://, or set insecure if the connection is encrypted otherwise",
    );
  }
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

/** Reports whether a host, as URL writes it, is this machine. */
function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host) || /^\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\]$/.test(host);
}
