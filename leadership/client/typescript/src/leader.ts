import { about, checkData, post, putCheckpoint, type CallOptions } from "./api.ts";
import { Backoff } from "./backoff.ts";
import { IndexMismatch, LeaseLost, NotReady, RegentError, TokenStale, invalid, transient } from "./errors.ts";
import type { Http } from "./http.ts";
import { epochOf } from "./keeper.ts";
import type { Acknowledgement, ElectionState } from "./schemas.ts";
import { successionAfter } from "./succession.ts";
import type { Term } from "./term.ts";
import { linked, sleep } from "./wait.ts";
import { watch } from "./watch.ts";
import { candidateID, checkOptions, milliseconds, quote, text, type Duration, type LeaseRequest } from "./wire.ts";

/** @internal A leader, as calls in its name need it. */
export interface Leader {
  readonly http: Http;
  readonly term: Term;
}

/** @internal Calls work with a signal that fires with any of these, and not after it has ended. */
export async function during<T>(signals: (AbortSignal | undefined)[], work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { controller, leave } = linked(...signals);
  try {
    return await work(controller.signal);
  } finally {
    leave();
  }
}

/**
 * @internal Makes a call in the leader's name, and repeats it while the server cannot be reached, could do
 * nothing, or has not answered, until the signal fires or the lease ends. After OutcomeUnknown the call may
 * have been carried out. A leader that hears from the answer that its lease is lost stops.
 */
export async function persist<T>({ term }: Leader, options: CallOptions, call: (r: LeaseRequest, options: CallOptions) => Promise<T>): Promise<T> {
  checkOptions(options);
  return await during([term.signal, options.signal], async (signal) => {
    const backoff = new Backoff();
    for (let last: unknown; ; ) {
      if (term.remaining() === 0) throw joined(term.cause, last);
      if (signal.aborted) throw joined(signal.reason, last);
      const r = term.named();
      try {
        return await call(r, { signal });
      } catch (e) {
        if (signal.aborted && !(e instanceof RegentError)) continue;
        if (!goesOn(e, term, r.token)) throw e;
        last = e;
        await sleep(term.clock, backoff.after(e), signal);
      }
    }
  });
}

/** Reports whether a call that failed so is to be made again. A lease that is lost ends. */
function goesOn(error: unknown, term: Term, token: number): boolean {
  if (error instanceof TokenStale) return term.token > token;
  if (!(error instanceof LeaseLost)) return transient(error);
  const epoch = epochOf(error, term) > 0; // whose token the next renewal brings
  if (!epoch) term.lose(error);
  return epoch;
}

/** Adds the error of the last call, if there was one, to the reason for making no other. */
function joined(reason: unknown, last: unknown): unknown {
  if (reason instanceof Error && reason.cause === undefined && last !== undefined) {
    try {
      reason.cause = last;
    } catch {
      // the reason is frozen
    }
  }
  return reason;
}

export interface HandOverOptions extends CallOptions {
  /** The successor; by default the best candidate that waits in line. */
  to?: string | undefined;
  /** After what time the term ends at the latest, but not before the end that the lease had: "1s" to "10m"; "30s" by default. */
  within?: Duration | undefined;
}

const defaultWithin = 30_000;

/** @internal Names the successor, and waits until that is ready. */
export async function handOver(leader: Leader, options: HandOverOptions): Promise<void> {
  const { to, within } = options;
  if (to !== undefined) candidateID(to);
  const ms = within === undefined ? defaultWithin : milliseconds("within", within);
  if (ms < 1_000 || ms > 600_000) throw invalid(`within: a hand-over takes "1s" to "10m", not ${quote(within)}`);
  const state = await persist(leader, options, (r, o) => {
    leader.term.handOver.may = true;
    return post<ElectionState>(leader.http, ":handOver", r, { to, within: text(ms) }, o);
  });
  leader.term.handOver.hear(state.revision, state.succession);
  await awaitReady(leader, (state.succession?.untilMs ?? ms) / 2, options);
}

/** Waits until the successor is ready, for so many milliseconds. */
function awaitReady(leader: Leader, patience: number, options: CallOptions): Promise<void> {
  const { term } = leader;
  return during([term.signal, options.signal], async (signal) => {
    const over = new AbortController();
    try {
      void watchSuccession(leader, over.signal);
      const late = sleep(term.clock, patience, signal, over.signal).then(() => true);
      while (!term.handOver.now?.ready) {
        if (!(await Promise.race([late, term.handOver.changed()]))) continue;
        if (term.remaining() === 0) throw term.cause;
        if (signal.aborted) throw signal.reason;
        const who = quote(term.handOver.now?.to);
        throw new NotReady(`the successor ${who} is not ready after ${patience / 1000} s, and the term ends; stop, and end the work (NOT_READY)`);
      }
    } finally {
      over.abort();
    }
  });
}

/** Hears of the successor by the election's events, which are sooner than the answers to renewals. */
async function watchSuccession({ http, term }: Leader, signal: AbortSignal): Promise<void> {
  try {
    for await (const news of watch(http, { election: term.election, signal })) {
      if (news.kind === "event" && news.event.leaderId === term.candidate) term.handOver.hear(news.event.revision, successionAfter(term.handOver.now, news.event));
      if (news.kind === "state" && news.state.leaderId === term.candidate) term.handOver.hear(news.state.revision, news.state.succession);
    }
  } catch {
    // where events cannot be watched, the answers to renewals have to do
  }
}

/** @internal Prepares a new leader, where the election's policy asks for that, and says that it serves. */
export async function promote({ http, term }: Leader, prepare: (() => void | Promise<void>) | undefined, options: CallOptions): Promise<void> {
  if (term.grant.serving !== false) return;
  await prepare?.();
  await persist({ http, term }, options, (r, o) => post(http, ":serving", r, {}, { signal: o.signal }));
}

/** Milliseconds that one call waits for followers. */
const followersWait = 60_000;

/** @internal Waits until at least so many members follow the token of the lease. */
export async function awaitFollowers({ http, term }: Leader, need: number, options: CallOptions): Promise<void> {
  if (!Number.isInteger(need) || need < 1 || need > 10_000) throw invalid(`need: the number of followers is an integer from 1 to 10000, not ${quote(need)}`);
  await during([term.signal, options.signal], async (signal) => {
    const backoff = new Backoff();
    for (;;) {
      const began = term.clock.now();
      let failure: unknown;
      try {
        const body = { fencingToken: term.token, need, wait: text(followersWait) };
        const a = await about<Acknowledgement>(http, term.election, "await acknowledgement", ":awaitAcknowledgement", { body, wait: followersWait, signal });
        if (a.acknowledged && term.remaining() > 0) return;
        if (term.clock.now() - began >= followersWait / 2) backoff.reset();
      } catch (e) {
        failure = e;
      }
      if (term.remaining() === 0) throw term.cause;
      if (signal.aborted) throw signal.reason;
      // an instance that has not heard of the token yet may call it stale; a renewal tells
      if (failure !== undefined && !transient(failure) && !(failure instanceof TokenStale)) throw failure;
      await sleep(term.clock, backoff.after(failure), signal);
    }
  });
}

/** What a checkpoint has beside its data. */
export interface CheckpointOptions extends CallOptions {
  /** One line that says what it is about. */
  task?: string | undefined;
}

/** The checkpoint of a leader, for the next one to inherit. */
export class LeaderCheckpoint {
  readonly #leader: Leader;
  #known = 0; // the sequence of the last one that is known of

  /** @internal */
  constructor(leader: Leader) {
    this.#leader = leader;
  }

  /**
   * Replaces the election's checkpoint, and returns once it is durable. data is any JSON but null, of at
   * most 64 KiB. It is repeated while the server cannot be reached, until the signal fires or the lease
   * ends. Errors: TokenStale, once a later leader has inherited; LeaseLost; PayloadTooLarge, for which
   * putAt is the remedy; OutcomeUnknown.
   */
  async put(data: unknown, options: CheckpointOptions = {}): Promise<void> {
    checkData("data", data);
    await this.#put({ data, task: options.task }, options);
  }

  /** Is put for data that is elsewhere. sha256 is its sum in hexadecimal. */
  putAt(uri: string, options: CheckpointOptions & { sha256?: string | undefined } = {}): Promise<void> {
    return this.#put({ uri, sha256: options.sha256, task: options.task }, options);
  }

  async #put(content: object, options: CallOptions): Promise<void> {
    for (;;) {
      const sequence = this.#known + 1;
      try {
        const put = await persist(this.#leader, options, (r, o) => putCheckpoint(this.#leader.http, r, { sequence, ...content }, o));
        this.#known = put.sequence ?? sequence;
        return;
      } catch (e) {
        if (!(e instanceof IndexMismatch)) throw e;
        this.#known = e.problem?.index ?? 0;
        if (this.#known === sequence - 1) throw e;
      }
    }
  }
}

/** What the leader of an election below may delegate in turn: depth and children are as for this election by default, the budget none. */
export interface DelegationLimits {
  depth?: number | undefined;
  children?: number | undefined;
  budget?: number | undefined;
}

/** @internal Makes an election for a part of the leader's task, and returns its name. */
export async function delegate(leader: Leader, child: string, limits: DelegationLimits | undefined, options: CallOptions): Promise<string> {
  if (typeof child !== "string" || !/^[a-z0-9]([a-z0-9_-]{0,125}[a-z0-9])?$/.test(child)) {
    throw invalid(`child: the last part of a name is 1 to 127 of a-z, 0-9, "_" and "-", beginning and ending with a letter or a digit, not ${quote(child)}`);
  }
  const made = await persist(leader, options, (r, o) => post<ElectionState>(leader.http, ":delegate", r, { child, limits }, o, `${r.election}.${child}`));
  return made.election;
}

export interface RequestApprovalOptions extends CallOptions {
  /** Asks for an approval with a new epoch, as for a new task: the lease then goes on under the next token. */
  newEpoch?: boolean | undefined;
}

export interface StepDownOptions {
  /** For how long the candidate is not granted the lease again: "1s" to "720h". */
  absence?: Duration | undefined;
}

/** @internal Checks what a leader steps down with, and returns it as the call has it. */
export function stepDownBody(reason: string, options: StepDownOptions): { reason: string; for?: string } {
  const bytes = typeof reason === "string" ? Buffer.byteLength(reason) : 0;
  if (bytes < 1 || bytes > 256 || /\p{Cc}|\p{Cs}/u.test(reason)) {
    throw invalid(`reason: a reason is one line of text of 1 to 256 bytes, without control characters, not ${quote(reason)}`);
  }
  if (options.absence === undefined) return { reason };
  const ms = milliseconds("absence", options.absence);
  if (ms < 1_000 || ms > 720 * 3_600_000) throw invalid(`absence: a candidate steps down for "1s" to "720h", not for ${quote(options.absence)}`);
  return { reason, for: text(ms) };
}
