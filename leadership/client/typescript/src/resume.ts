import { Backoff } from "./backoff.ts";
import { timer } from "./clock.ts";
import { HistoryCompacted, RegentError, StoreUnavailable, transient } from "./errors.ts";
import type { Http } from "./http.ts";
import { readEvents, type Message } from "./sse.ts";
import { linked, sleep as wait } from "./wait.ts";
import { quote } from "./wire.ts";

/** @internal A message that no Regent server sends, or that was not asked for. A new connection may help. */
export class Garbled extends StoreUnavailable {
  constructor(m: Message, why: string) {
    super(`invalid message ${quote(m.name)} in the stream: ${why}`);
  }
}

/** @internal The server has ended the stream. */
export class Ended extends Error {
  /** Whether that is part of normal operation. */
  readonly planned: boolean;

  constructor(reason: string) {
    super(`the server ended the stream: ${reason}`);
    this.planned = reason === "limit" || reason === "draining";
  }
}

/** @internal Wraps an error that a new connection will not mend. */
export class Permanent extends Error {
  readonly error: unknown;

  constructor(error: unknown) {
    super("permanent");
    this.error = error;
  }
}

/** @internal Reports whether a stream or a read that failed so is to be followed by another. */
export function passes(error: unknown): boolean {
  return error instanceof Ended || transient(error);
}

/** @internal */
export function compacted(detail: string): Permanent {
  return new Permanent(new HistoryCompacted(`${detail}; begin again without a cursor, with the present state`));
}

/** @internal Reads the document of a message. */
export function parse<T extends object>(m: Message): T {
  let value: unknown;
  try {
    value = JSON.parse(m.data);
  } catch {
    throw new Garbled(m, "it is no JSON");
  }
  if (typeof value !== "object" || value === null) throw new Garbled(m, "it is no object");
  return value as T;
}

/** @internal One connection to ask for. */
export interface StreamCall {
  name: string;
  path: string;
  query?: Record<string, string | number | undefined>;
  headers?: Record<string, string | undefined>;
  signal?: AbortSignal | undefined;
  /** How long the stream, or its beginning, may be silent, in milliseconds. */
  idle?: number | undefined;
  /** Called when the server has answered. */
  onOpen?: () => void;
}

/** Three signs of life of the server, which come every 15 s. */
const defaultIdle = 45_000;

/**
 * @internal Yields the messages of one connection. It ends with an error: StoreUnavailable if the
 * connection broke or fell silent, the signal's reason, or what the server refuses with.
 */
export async function* messages(http: Http, k: StreamCall): AsyncGenerator<Message, never, void> {
  const { signal, idle = defaultIdle, onOpen, ...call } = k;
  const { controller: connection, leave } = linked(signal);
  try {
    const response = await http.open({ ...call, method: "GET", changes: false, limit: idle, signal: connection.signal });
    onOpen?.();
    yield* readEvents(response.body!, idle);
    throw new StoreUnavailable(`${k.name}: the stream was cut off (STORE_UNAVAILABLE)`);
  } catch (e) {
    signal?.throwIfAborted();
    if (e instanceof RegentError) throw e;
    throw new StoreUnavailable(`${k.name}: the stream broke (STORE_UNAVAILABLE)`, { cause: e });
  } finally {
    leave();
    connection.abort();
  }
}

/** @internal Waits for a time in milliseconds, or until the signal fires. */
export const sleep = (milliseconds: number, signal?: AbortSignal): Promise<void> => wait({ timer }, milliseconds, signal);

/** A try that lasted so long, in milliseconds, does not count as one of several failures in a row. */
const longTry = 10_000;
/** The longest pause after a stream that the server has ended as planned, in milliseconds. */
const afterPlanned = 100;

/** @internal Tells failures in a row from single ones. */
export class Retry {
  readonly #backoff = new Backoff();
  #began = 0;

  /** A try begins. */
  begin(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    this.#began = performance.now();
  }

  /** It has brought something. */
  succeeded(): void {
    this.#backoff.reset();
  }

  /** Waits until the next try, or throws an error that would stay. */
  async failed(error: unknown, signal: AbortSignal | undefined, told?: (error: unknown) => void): Promise<void> {
    signal?.throwIfAborted();
    if (error instanceof Permanent) throw error.error;
    if (!passes(error)) throw error;
    const planned = error instanceof Ended && error.planned;
    if (planned || performance.now() - this.#began > longTry) this.#backoff.reset();
    if (planned) return sleep(Math.random() * afterPlanned, signal);
    told?.(error);
    await sleep(this.#backoff.after(error), signal);
  }
}
