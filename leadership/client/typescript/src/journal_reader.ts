import { readJournal, readSnapshot } from "./api.ts";
import { HistoryCompacted, IndexMismatch, NotFound, StoreUnavailable } from "./errors.ts";
import type { Http } from "./http.ts";
import { Ended, Garbled, Permanent, Retry, messages, parse, sleep } from "./resume.ts";
import type { JournalEntry, JournalPage, JournalSnapshot } from "./schemas.ts";
import type { Message } from "./sse.ts";
import { path, quote } from "./wire.ts";

/** One item of a journal. index is that of the entry, or of the last one that the snapshot stands for. */
export type JournalItem =
  | { kind: "entry"; index: number; entry: JournalEntry }
  /**
   * Stands for all entries up to its index, those that were yielded before included: what was built
   * from them is to be replaced by it. After the store was restored from a backup it comes anew; if there
   * is none, its index is 0 and it has no data: begin with nothing.
   */
  | { kind: "snapshot"; index: number; snapshot: JournalSnapshot };

export interface FollowOptions {
  /** A member of the election: it tells up to which item the loop has done its work. */
  member?: string | undefined;
  /** Ends the loop, which then throws its reason. */
  signal?: AbortSignal | undefined;
}

/** How often a follower may say how far it is, in milliseconds, and how often it says so to stay a member. */
const tellEvery = 1_000;
const stayEvery = 10_000;

const maxPage = 1_000;

/**
 * @internal Reads a journal: each index once, in order and without a gap, from pages, streams and snapshots. It
 * reads no faster than the loop.
 */
export class JournalReader {
  readonly #http: Http;
  readonly #election: string;
  readonly #member: string | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #retry = new Retry();
  #last: number; // index of the items that were passed on
  #applied: number; // so, and the loop has done its work
  #generation = 0; // of the journal; another one after its store was restored
  #missing = 0; // the entry that was left out last

  constructor(http: Http, election: string, after: number, member?: string, signal?: AbortSignal) {
    this.#http = http;
    this.#election = election;
    this.#last = this.#applied = after;
    this.#member = member;
    this.#signal = signal;
  }

  /** Yields what there is, and then each entry as it is appended, until an error that would stay. */
  async *follow(): AsyncGenerator<JournalItem, void, void> {
    const telling = new AbortController();
    if (this.#member !== undefined) void this.#tell(telling.signal); // the loop may work on the first page for long
    try {
      yield* this.#retrying(() => this.#firstPage());
      for (;;) yield* this.#retrying(() => this.#stream());
    } finally {
      telling.abort();
    }
  }

  /** Yields what there is up to that index. */
  async *readUpTo(end: number): AsyncGenerator<JournalItem, void, void> {
    while (this.#last < end) yield* this.#retrying(() => this.#page(end));
  }

  // Yields what read yields, and reads again until it ends or throws what would stay. Entries that are
  // only to be had as a snapshot are passed on as one.
  async *#retrying(read: () => AsyncGenerator<JournalItem>): AsyncGenerator<JournalItem, void, void> {
    for (;;) {
      this.#retry.begin(this.#signal);
      try {
        yield* this.#passed(read());
        return;
      } catch (e) {
        let failure: unknown = e;
        if (e instanceof HistoryCompacted) {
          try {
            yield* this.#passed(this.#snapshot(e.problem?.generation ?? 0));
            continue;
          } catch (e) {
            failure = e;
          }
        }
        await this.#retry.failed(failure, this.#signal);
      }
    }
  }

  async *#passed(items: AsyncGenerator<JournalItem>): AsyncGenerator<JournalItem, void, void> {
    for await (const item of items) {
      this.#retry.succeeded();
      this.#last = item.index;
      yield item;
      this.#applied = item.index;
    }
  }

  // The member, and how far it is.
  #standing(): { member?: string; applied?: number } {
    return this.#member === undefined ? {} : { member: this.#member, ...(this.#applied > 0 ? { applied: this.#applied } : {}) };
  }

  async #read(limit?: number): Promise<JournalPage> {
    const page = await readJournal(this.#http, this.#election, { after: this.#last, generation: this.#generation, limit, ...this.#standing(), signal: this.#signal });
    this.#generation = page.generation ?? 0;
    return page;
  }

  // The first page tells whether the journal has reached the index at all.
  async *#firstPage(): AsyncGenerator<JournalItem> {
    const page = await this.#read();
    if (page.index < this.#last) {
      throw new Permanent(new IndexMismatch(
        `the journal of election ${quote(this.#election)} is at index ${page.index}, and ${this.#last} was asked for; it is another one: begin again from 0`));
    }
    yield* this.#all(page.entries);
  }

  async *#page(end: number): AsyncGenerator<JournalItem> {
    const page = await this.#read(Math.min(end - this.#last, maxPage));
    if (page.entries.length === 0) {
      throw new Permanent(new StoreUnavailable(`the journal has no entry after ${this.#last}, and ${end} was written`));
    }
    yield* this.#all(page.entries);
  }

  async *#snapshot(generation: number): AsyncGenerator<JournalItem> {
    const restored = generation !== this.#generation;
    const snapshot = await readSnapshot(this.#http, this.#election, { signal: this.#signal }).catch((e: unknown) => {
      if (restored && e instanceof NotFound) return { election: this.#election, upTo: 0, fencingToken: 0, at: "" };
      throw e;
    });
    if (!restored && snapshot.upTo <= this.#last) {
      throw new StoreUnavailable(`the snapshot ends at ${snapshot.upTo}, and entries after ${this.#last} are said to be had as a snapshot only`);
    }
    this.#generation = generation;
    yield { kind: "snapshot", index: snapshot.upTo, snapshot };
  }

  async *#stream(): AsyncGenerator<JournalItem> {
    const generation = this.#generation;
    const query = { after: this.#last, ...(generation ? { generation } : {}), ...this.#standing() };
    for await (const m of messages(this.#http, { name: "follow", path: path(this.#election, "/journal"), query, signal: this.#signal })) {
      if (m.name === "end") throw new Ended(parse<{ reason: string }>(m).reason);
      if (m.name === "entry") yield* this.#all([entryOf(m, generation)]);
    }
  }

  *#all(entries: JournalEntry[]): Generator<JournalItem> {
    for (const entry of entries) {
      const next = this.#last + 1;
      if (entry.index < next) continue;
      if (entry.index > next) {
        const gap = new StoreUnavailable(`entry ${next} of the journal of election ${quote(this.#election)} was left out`);
        if (this.#missing === next) throw new Permanent(gap);
        this.#missing = next;
        throw gap;
      }
      yield { kind: "entry", index: entry.index, entry };
    }
  }

  // Says how far the member is, until the signal fires.
  async #tell(signal: AbortSignal): Promise<void> {
    let told = this.#applied;
    for (let since = 0; !signal.aborted && !this.#signal?.aborted; since += tellEvery) {
      const applied = this.#applied;
      if (applied !== told || since >= stayEvery) {
        try {
          await readJournal(this.#http, this.#election, { after: applied, generation: this.#generation, limit: 1, member: this.#member, applied, signal });
          [told, since] = [applied, 0];
        } catch (e) {
          if (e instanceof HistoryCompacted) [told, since] = [applied, 0];
        }
      }
      await sleep(tellEvery, signal);
    }
  }
}

function entryOf(m: Message, generation: number): JournalEntry {
  const entry = parse<JournalEntry>(m);
  if (!Number.isSafeInteger(entry.index) || m.id !== (generation ? `${generation}:${entry.index}` : String(entry.index))) {
    throw new Garbled(m, `it has index ${entry.index}, but another id`);
  }
  return entry;
}
