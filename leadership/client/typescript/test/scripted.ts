// A clock that tests move, and a server whose answers they write.
import type { Clock } from "../src/clock.ts";
import { Client, type ClientOptions } from "../src/client.ts";

export class FakeClock implements Clock {
  readonly resolution: number = 0;
  #now = 1_000_000;
  #timers: { at: number; call: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  timer(milliseconds: number, call: () => void): () => void {
    const t = { at: this.#now + milliseconds, call };
    this.#timers.push(t);
    return () => void (this.#timers = this.#timers.filter((o) => o !== t));
  }

  /** Moves the clock and fires no timer, as if the process stood still. */
  jump(milliseconds: number): void {
    this.#now += milliseconds;
  }

  /** Moves the clock, fires the timers on the way, and lets what they wake run. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    await settle();
    for (;;) {
      const next = this.#timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#now = Math.max(this.#now, next.at);
      this.#timers = this.#timers.filter((t) => t !== next);
      next.call();
      await settle();
    }
    this.#now = end;
  }
}

/** Lets all that is ready run. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

export interface Asked {
  verb: string;
  election: string;
  at: number;
  body: Record<string, unknown>;
  headers: Headers;
  signal: AbortSignal;
}

type Answer = (asked: Asked) => Response | Promise<Response>;

/** A server that answers each verb as it was told last, or with the next of a row. Without an answer it is silent. */
export class Script {
  readonly clock = new FakeClock();
  readonly asked: Asked[] = [];
  readonly logged: string[] = [];
  #answers = new Map<string, Answer[]>();

  /** Tells how a verb is answered: one answer after the other, and the last again and again. */
  on(verb: string, ...answers: Answer[]): void {
    this.#answers.set(verb, answers);
  }

  client(options: ClientOptions = {}): Client {
    const log: ClientOptions["log"] = (level, message, details) => void this.logged.push(`${level} ${message} ${JSON.stringify(details)} ${String(details.reason)}`);
    return new Client("http://127.0.0.1:1", { candidate: "ann", clock: this.clock, fetch: this.fetch, log, ...options });
  }

  of(verb: string): Asked[] {
    return this.asked.filter((a) => a.verb === verb);
  }

  readonly fetch = async (url: Parameters<typeof fetch>[0], init: RequestInit = {}): Promise<Response> => {
    const signal = init.signal!;
    signal.throwIfAborted();
    const { pathname } = new URL(String(url));
    const verb = /:(\w+)$/.exec(pathname)?.[1] ?? (pathname.endsWith("/events") ? "watch" : "get");
    const election = /elections\/([^/:]+)/.exec(pathname)?.[1] ?? "";
    const asked = { verb, election, at: this.clock.now(), body: JSON.parse(String(init.body ?? "{}")), headers: new Headers(init.headers), signal };
    this.asked.push(asked);
    const row = this.#answers.get(verb) ?? [];
    const answer = row.length > 1 ? row.shift() : row[0];
    return await new Promise<Response>((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
      if (answer) Promise.resolve(answer(asked)).then(resolve, reject);
    });
  };
}

const json = (status: number, type: string, body: unknown): Response => new Response(JSON.stringify(body), { status, headers: { "content-type": type } });

/** A lease that is held, with changes. */
export function held(more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    election: "reports", state: "held", leaderId: "ann", fencingToken: 1, revision: 1, leaseDuration: "30s", expiresInMs: 30_000,
    renewInMs: 10_000, readAt: "2026-01-01T00:00:00Z", configuration: { leaseDuration: "30s" }, ...more,
  };
}

export const ok = (more: Record<string, unknown> = {}): Answer => () => json(200, "application/json", held(more));
export const vacant = ok({ state: "vacant", leaderId: undefined, expiresInMs: undefined, renewInMs: undefined });
export const reply = (body: unknown): Response => json(200, "application/json", body);

export const refuse =
  (status: number, code: string, more: Record<string, unknown> = {}): Answer =>
  () =>
    json(status, "application/problem+json", { type: "urn:regent:problem:" + code, title: code, status, detail: "it says so", code, ...more });

/** No answer: the connection breaks. */
export const broken: Answer = () => Promise.reject(new TypeError("fetch failed", { cause: new Error("other side closed") }));
/** The server cannot be reached. */
export const unreachable: Answer = () => Promise.reject(new TypeError("fetch failed", { cause: Object.assign(new Error("refused"), { syscall: "connect", code: "ECONNREFUSED" }) }));
/** No answer at all. */
export const silent: Answer = () => new Promise(() => {});

/** Answers later, by the clock of the script; with `deaf`, even if the caller does not wait any more. */
export const late =
  (s: Script, milliseconds: number, answer: Answer): Answer =>
  (asked) =>
    new Promise((resolve) => s.clock.timer(milliseconds, () => resolve(answer(asked))));
