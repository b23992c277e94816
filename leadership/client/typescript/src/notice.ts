import { deadline, type Belief } from "./belief.ts";
import type { Election } from "./wire.ts";

/**
 * Tells a leader of a change that concerns its term. Kinds are `evicted`, `drained`, `handOver`, `maxTerm`,
 * `approvalDue` and `stuck`, why the term will end however often it is renewed; `goesOn`, when such an end
 * does not come any more; `newEpoch`, when the lease goes on with another token; `tripped`, when the
 * election's policy has ended the term; `readOnly`, when the quorum that the policy asks for is lost, so that
 * the leader goes on and must not write; and `writable`, when it is back. A newer server may send others.
 */
export interface Notice {
  kind: string;
  election: string;
  /** Of the lease; the new one after `newEpoch`. */
  token: number;
  /** Milliseconds from when the change was heard of until the term ends; undefined if it has no end. */
  left?: number;
}

/** @internal The notices of a lease, kept for those who ask late. */
export class Notices {
  #all: Notice[] = [];
  #closed = false;
  #wake: (() => void)[] = [];

  post(notice: Notice): void {
    if (!this.#closed) this.#all.push(notice);
    this.#rouse();
  }

  close(): void {
    this.#closed = true;
    this.#rouse();
  }

  #rouse(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  /** Returns all notices from the first on, and ends after the last. */
  async *read(): AsyncGenerator<Notice, void, undefined> {
    for (let i = 0; ; i++) {
      while (i >= this.#all.length) {
        if (this.#closed) return;
        await new Promise<void>((resolve) => this.#wake.push(resolve));
      }
      yield { ...this.#all[i]! };
    }
  }
}

/** @internal The end of a term as an answer says. */
export interface TermEnd {
  because: string;
  /** By the store's clock. */
  at: string;
  /** On the client's clock, no later than that. */
  on: number;
}

/** @internal Reads the answer to a request that left at `sent`, and had waited. */
export function termEnd(sent: number, waited: number, answer: Election): TermEnd | undefined {
  const { endsBecause, endsBy, endsInMs } = answer;
  if (typeof endsBecause !== "string" || typeof endsBy !== "string" || !endsBecause || !endsBy) return undefined;
  return { because: endsBecause, at: endsBy, on: deadline(sent, waited, endsInMs ?? 0, 0) };
}

/** @internal Reports whether the lease that is believed in ends with the term. */
export function cuts(end: TermEnd | undefined, belief: Belief): end is TermEnd {
  return end !== undefined && belief.leaseEnd >= end.on;
}

/**
 * @internal Returns the notice of an end; "" if it needs none. Each report of progress moves the end of a
 * leader that could be stuck, which needs a notice only when it is near. That of a lease that stands on
 * another one moves with each renewal.
 */
export function noticeOf(end: TermEnd | undefined, belief: Belief): string {
  if (!end || end.because === "parent" || (end.because === "stuck" && !cuts(end, belief))) return "";
  return end.because === "approval" ? "approvalDue" : end.because;
}
