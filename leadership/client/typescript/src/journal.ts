import { checkData, post, putSnapshot, type CallOptions } from "./api.ts";
import { invalid } from "./errors.ts";
import { isObject, misread } from "./http.ts";
import { JournalReader, type JournalItem } from "./journal_reader.ts";
import { persist, type Leader } from "./leader.ts";
import type { JournalHead } from "./schemas.ts";
import { checkOptions, quote } from "./wire.ts";

/** An entry to append to a journal. */
export interface Entry {
  /** At most 64 bytes. */
  type?: string | undefined;
  /** Any JSON but null. */
  data: unknown;
}

/**
 * The journal of an election, to which its leader appends: a log that only the present leader can write.
 * Its methods may be called concurrently; appends are made one after the other.
 */
export class Journal {
  readonly #leader: Leader;
  #index: number;
  #turn: Promise<unknown> = Promise.resolve();

  /** @internal */
  constructor(leader: Leader, index: number) {
    this.#leader = leader;
    this.#index = index;
  }

  /** The index of the last entry that the leader knows of; 0 if there is none. */
  get index(): number {
    return this.#index;
  }

  /**
   * Adds entries after index, all or none, and returns the index of the last one. What it returns as done
   * is durable. It takes up to 500 entries with 512 KiB of data. It is repeated while the server cannot be
   * reached or has not answered, until the signal fires or the lease ends.
   *
   * After OutcomeUnknown the entries may be in the journal, or may still get there. The same call again
   * finds out, and appends them once; one with others is refused with IndexMismatch if they are there.
   * lease.journal opens it anew, with the index that it has then.
   */
  async append(entries: Entry | readonly Entry[], options: CallOptions = {}): Promise<number> {
    checkOptions(options);
    const all = (Array.isArray(entries) ? entries : [entries as unknown]).map((entry: unknown, i) => {
      if (!isObject(entry)) throw invalid(`entries/${i}: an entry is { type, data }, not ${quote(entry)}`);
      const { type, data } = entry;
      checkData(`entries/${i}/data`, data);
      return { ...(type ? { type } : {}), data: JSON.parse(JSON.stringify(data)) as unknown }; // as it is now
    });
    if (all.length === 0) throw invalid("entries: append at least one");
    const done = this.#turn.then(() => {
      options.signal?.throwIfAborted();
      return this.#append(all, options);
    });
    this.#turn = done.catch(() => {});
    return await done;
  }

  async #append(entries: object[], options: CallOptions): Promise<number> {
    const after = this.#index;
    const end = after + entries.length;
    const head = await persist(this.#leader, options, async (r, o) => {
      const head = await post<JournalHead>(this.#leader.http, "/journal:append", r, { after, entries }, o);
      if (head.index !== end) throw misread({ name: "append to journal", changes: true }, `it says index ${head.index}, not ${end}`);
      return head;
    });
    return (this.#index = Math.max(this.#index, head.index));
  }

  /**
   * Puts a snapshot in the place of all entries up to an index: data is any JSON but null, of at most
   * 512 KiB. Those entries are deleted, and readers that need them get the snapshot instead.
   */
  async snapshot(upTo: number, data: unknown, options: CallOptions = {}): Promise<void> {
    checkData("data", data);
    await this.#snapshot({ upTo, data }, options);
  }

  /** Is snapshot for data that is elsewhere. */
  snapshotAt(upTo: number, uri: string, options: CallOptions = {}): Promise<void> {
    return this.#snapshot({ upTo, uri }, options);
  }

  async #snapshot(content: object, options: CallOptions): Promise<void> {
    await persist(this.#leader, options, (r, o) => putSnapshot(this.#leader.http, r, content, o));
  }

  /**
   * Yields what the journal has after an index, up to the index that it has when the loop begins: a
   * snapshot if the first of these entries are only to be had as one, and then each entry once, in order.
   */
  read(after = 0, options: CallOptions = {}): AsyncGenerator<JournalItem, void, void> {
    const { http, term } = this.#leader;
    return new JournalReader(http, term.election, index("after", after), undefined, options.signal).readUpTo(this.#index);
  }
}

/** @internal Checks the index of an entry. */
export function index(name: string, value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw invalid(`${name}: an index is an integer, 0 or more, not ${quote(value)}`);
  return value as number;
}
