import { invalid, InvalidArgument, type RegentError } from "./errors.ts";
import { isObject } from "./http.ts";
import type { Schemas } from "./wire.ts";

/** What a leader says of its work. Counters are cumulative for the term, and never fall. */
export interface Report {
  /** Any number that rises with useful work. */
  progress?: number;
  tasks?: number;
  /** Of a language model. */
  tokensUsed?: number;
  calls?: number;
  /** Of the calls. */
  errors?: number;
  /** A duration, as "20m". */
  eta?: string;
  /** One line for people, as "ok". */
  health?: string;
  /** Anything that JSON can write; null removes a key. */
  capabilities?: Record<string, unknown>;
  dependencies?: Record<string, unknown>;
  custom?: Record<string, unknown>;
}

const counters = ["progress", "tasks", "tokensUsed", "calls", "errors"];
const texts = ["eta", "health"];
const objects = ["capabilities", "dependencies", "custom"];
const maxBytes = 2048;
/** Which renewal may carry a report. One with a report costs the store more. */
const every = 3;
/** Milliseconds without reports after the server has refused one. */
const silence = 600_000;

/** @internal The report of a lease, and how far the server knows it. */
export class Reporting {
  #all: Record<string, unknown> = {};
  #text = "{}";
  #told = "{}"; // the last that the server has taken or refused
  #sending = ""; // in the renewal that is under way
  #plain = 0; // how many renewals go without before the next with one
  #never = -Infinity; // until then there are none, unless they are urgent
  /** The last renewal had a report, and was not answered. */
  failed = false;

  /** Adds to the report. Throws InvalidArgument for what no server would take; then nothing has changed. */
  add(r: Report): void {
    if (!isObject(r)) throw invalid("report: a report is an object, as { progress: 1 }");
    const all = { ...this.#all };
    for (const [name, value] of Object.entries(r)) if (value !== undefined) all[name] = merged(name, all[name], value);
    const text = JSON.stringify(all);
    if (Buffer.byteLength(text) > maxBytes) throw invalid(`report: it has at most ${maxBytes} bytes, not ${Buffer.byteLength(text)}`);
    this.#all = all;
    this.#text = text;
  }

  /** Returns the report for the renewal that is about to be sent; undefined if it goes without. */
  next(now: number, urgent: boolean): Schemas["Report"] | undefined {
    this.#sending = "";
    const due = this.#plain === 0 && now >= this.#never;
    // after a failure the lease comes first
    if (this.#text === this.#told || this.failed || !(due || urgent)) return undefined;
    this.#sending = this.#text;
    return JSON.parse(this.#text) as Schemas["Report"];
  }

  answered(): void {
    this.failed = false;
    if (this.#sending) {
      this.#told = this.#sending;
      this.#plain = every - 1;
    } else if (this.#plain > 0) {
      this.#plain--;
    }
  }

  unanswered(): void {
    this.failed = this.#sending !== "";
  }

  refused(now: number): void {
    this.#told = this.#sending;
    this.#never = now + silence;
    this.failed = false;
  }
}

function merged(name: string, before: unknown, value: unknown): unknown {
  if (counters.includes(name)) {
    if (!Number.isSafeInteger(value) || (value as number) < 0) throw invalid(`report: ${name} is an integer, 0 or more`);
    return Math.max((before as number | undefined) ?? 0, value as number);
  }
  if (texts.includes(name) && typeof value === "string") return value;
  if (objects.includes(name) && isObject(value)) return mergedObject(name, before as Record<string, unknown> | undefined, value);
  throw invalid(`report: ${name} is no part of a report, or has a value of the wrong type`);
}

function mergedObject(name: string, before: Record<string, unknown> | undefined, more: Record<string, unknown>): Record<string, unknown> {
  const all = { ...before };
  for (const [key, value] of Object.entries(more)) {
    if (value === null || value === undefined) {
      delete all[key];
      continue;
    }
    let text: string | undefined;
    try {
      text = JSON.stringify(value);
    } catch {
      // a cycle, or a bigint
    }
    if (text === undefined) throw invalid(`report: ${name}.${key} cannot be written as JSON`);
    all[key] = JSON.parse(text);
  }
  return all;
}

/** @internal Reports whether the answer to a renewal that carried a report is about that report. */
export function refusesReport(error: RegentError): boolean {
  return error instanceof InvalidArgument && !error.problem?.errors?.[0]?.pointer?.endsWith("/ticket");
}
