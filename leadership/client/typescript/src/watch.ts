import { StoreUnavailable, invalid } from "./errors.ts";
import type { Http } from "./http.ts";
import { Ended, Garbled, Retry, compacted, messages, parse } from "./resume.ts";
import { candidateID, path, quote } from "./wire.ts";
import type { ElectionEvent, ElectionState, MemberChange } from "./schemas.ts";
import type { Message } from "./sse.ts";

/** Says what to watch, and from where. */
export interface WatchRequest {
  /** The one election to watch; left out for all. */
  election?: string | undefined;
  /** With all elections: only names that begin with it. */
  prefix?: string | undefined;
  /** For an election with seats: with all elections, only that one and its seats. */
  of?: string | undefined;
  /**
   * The cursor of the last news that was seen: the watch continues after it. For one election it is a
   * revision, and "0" is before the first. Without it the watch begins with the present state.
   */
  after?: string | number | undefined;
  /**
   * A follower of the one election that is watched, for as long as the watch is connected: it follows
   * the token of the last event that it was sent. See Client.member, which needs no open connection.
   */
  member?: string | undefined;
  /** Asks for news of members of the one election that is watched. */
  members?: boolean | undefined;
  /**
   * Called without an error when the watch is connected, and with one each time the connection was
   * lost or could not be made, before the next try. It is called between two news.
   */
  onConnection?: ((error?: unknown) => void) | undefined;
  /** Ends the watch, which then throws its reason. */
  signal?: AbortSignal | undefined;
  /** @internal How long the stream may be silent, in milliseconds. */
  idle?: number | undefined;
}

/** One item of a watch. */
export type News =
  /** The state of an election when the watch begins. A deleted one is reported only if it alone is watched. */
  | { kind: "state"; state: ElectionState; cursor: string }
  /** What has happened. */
  | { kind: "event"; event: ElectionEvent; cursor: string }
  /** A member has come or gone. What happens while the watch is not connected is not told. */
  | { kind: "member"; member: MemberChange; cursor: string }
  /** The state of every election was reported: there are no others. */
  | { kind: "ready"; cursor: string };

/** Reports whether the text can be a cursor and a header. */
const validCursor = (text: string): boolean => /^[\x21-\x7e]{1,64}$/.test(text);

/**
 * @internal Turns the messages of streams into news: each event once, in order and without a gap, however often
 * the stream breaks. It does no I/O.
 */
export class Watcher {
  readonly request: WatchRequest;
  /** Where the next stream resumes; "" to begin with the present state. */
  cursor = "";
  readonly #seen = new Map<string, number>(); // last reported revision of each election
  #states: ElectionState[] = []; // that the present stream has sent before ready
  #missing = ""; // the event that the last stream left out

  constructor(request: WatchRequest) {
    this.request = request;
    const { election, prefix, of, member, members } = request;
    const after = String(request.after ?? "");
    if (election === undefined) {
      if (member !== undefined || members) {
        throw invalid("members are those of one election; name it, or leave member and members out");
      }
      if (after !== "" && !validCursor(after)) {
        throw invalid(`after must be the cursor of the last item, not ${quote(after)}; leave it out to begin with the present state`);
      }
      if (of !== undefined) path(of); // checks the name
      if (of !== undefined && prefix) throw invalid("prefix and of are for different elections; give one of them");
    } else {
      path(election); // checks the name
      if (member !== undefined) candidateID(member);
      if (prefix || of !== undefined) throw invalid(`a prefix, or of, is only for a watch of all elections, not of ${quote(election)}`);
      if (after !== "") {
        if (!/^(0|[1-9][0-9]{0,15})$/.test(after)) {
          throw invalid(`after must be the last revision, not ${quote(after)}; leave it out to begin with the present state`);
        }
        this.#seen.set(election, Number(after));
      }
    }
    this.cursor = after;
  }

  /** The path, query and headers of the next stream. */
  call(): { path: string; query: Record<string, string>; headers: Record<string, string> } {
    const { election, prefix, of, member } = this.request;
    const query: Record<string, string> = {};
    if (prefix) query["prefix"] = prefix;
    if (of !== undefined) query["of"] = of;
    if (member !== undefined) query["member"] = member;
    const headers: Record<string, string> = this.cursor === "" ? {} : { "Last-Event-ID": this.cursor };
    return { path: election === undefined ? "/v1/events" : path(election, "/events"), query, headers };
  }

  /** A new stream begins. */
  connected(): void {
    this.#states = [];
  }

  /** Takes a message, and returns the news of it. An error ends the connection. */
  receive(m: Message): News[] {
    switch (m.name) {
      case "snapshot":
        return this.#state(m, parse<ElectionState>(m));
      case "ready":
        return this.#ready(m, parse<{ elections: number }>(m).elections);
      case "member":
        return this.request.members ? [{ kind: "member", member: member(m), cursor: this.cursor }] : [];
      case "end":
        return this.#end(m, parse<{ reason: string }>(m).reason);
      case "":
        return this.#event(m, parse<ElectionEvent>(m));
    }
    return []; // from a later version
  }

  // When all elections are watched, the states are held back until all have arrived: if the connection
  // broke before, a deletion in between would not be reported by the next one.
  #state(m: Message, state: ElectionState): News[] {
    this.#match(m, state);
    if (this.request.election === undefined) {
      this.#states.push(state);
      return [];
    }
    matchId(m, state.revision);
    return this.#known(state) ? [] : [this.#emitState(state, m.id)];
  }

  #known(state: ElectionState): boolean {
    return state.revision <= (this.#seen.get(state.election) ?? -1);
  }

  #emitState(state: ElectionState, cursor: string): News {
    this.#seen.set(state.election, state.revision);
    this.cursor = cursor;
    return { kind: "state", state, cursor };
  }

  #ready(m: Message, elections: number): News[] {
    if (this.request.election !== undefined) return [];
    if (!validCursor(m.id) || elections !== this.#states.length) {
      throw new Garbled(m, `it says that there are ${elections} elections after ${this.#states.length} were sent, or has an invalid id`);
    }
    const news = this.#states.filter((l) => !this.#known(l)).map((l) => this.#emitState(l, ""));
    this.#states = [];
    this.cursor = m.id;
    return [...news, { kind: "ready", cursor: m.id }];
  }

  // A known event moves the cursor of all elections on; it would move the cursor of one election back.
  #event(m: Message, event: ElectionEvent): News[] {
    this.#match(m, event);
    const one = this.request.election !== undefined;
    if (typeof event.type !== "string" || event.type === "" || event.revision < 1) throw new Garbled(m, "it has no revision or no type");
    if (one) matchId(m, event.revision);
    else if (this.cursor === "") throw new Garbled(m, "it comes before the initial state is complete");
    else if (!validCursor(m.id)) throw new Garbled(m, `it has the invalid id ${quote(m.id)}`);
    const known = this.#seen.get(event.election);
    if (known !== undefined && event.revision > known + 1) throw this.#miss(event.election, known + 1);
    const stale = known !== undefined && event.revision <= known;
    if (!one || !stale) this.cursor = m.id;
    if (stale) return [];
    this.#seen.set(event.election, event.revision);
    return [{ kind: "event", event, cursor: m.id }];
  }

  // If the next stream leaves the event out again, it is lost for good.
  #miss(election: string, revision: number): Error {
    const detail = `the stream left out revision ${revision} of election ${quote(election)}`;
    const again = this.#missing === detail;
    this.#missing = detail;
    return again ? compacted(detail) : new StoreUnavailable(detail);
  }

  // The reason of the end, and where to resume.
  #end(m: Message, reason: string): never {
    const { election } = this.request;
    if (election === undefined && this.cursor !== "" && validCursor(m.id)) {
      this.cursor = m.id; // it moves on even while the watched elections are quiet
    } else if (election !== undefined && this.cursor === "" && m.id === "0") {
      this.cursor = "0"; // the election does not exist yet
      this.#seen.set(election, 0);
    }
    if (reason === "compacted") throw compacted("the stream fell too far behind");
    throw new Ended(reason);
  }

  #match(m: Message, about: { election: string; revision: number }): void {
    const { election, prefix = "", of } = this.request;
    const right = election !== undefined ? about.election === election
      : typeof about.election === "string" && (of === undefined ? about.election.startsWith(prefix) : spans(of, about.election));
    if (!right) throw new Garbled(m, `it is about election ${quote(about.election)}, which is not watched`);
    if (!Number.isSafeInteger(about.revision) || about.revision < 0) throw new Garbled(m, "it has no revision");
  }
}

// Reports whether the name is that of the election, or of one that may be its seat.
function spans(of: string, name: string): boolean {
  return name === of || name.startsWith(`${of}.`) && /^([1-9][0-9]?|100)$/.test(name.slice(of.length + 1));
}

function member(m: Message): MemberChange {
  const change = parse<MemberChange>(m);
  if (typeof change.id !== "string" || !change.change) throw new Garbled(m, "it does not say what has changed");
  return change;
}

function matchId(m: Message, revision: number): void {
  if (m.id !== String(revision)) throw new Garbled(m, `it is at revision ${revision}, but its id is ${quote(m.id)}`);
}

/**
 * @internal Yields the present state and then each event as it happens: the events of one election once, in
 * order and without a gap. It reconnects and resumes when the connection breaks or falls silent, when
 * the server ends the stream, and after transient errors such as StoreUnavailable or RateLimited, also
 * at the start. It reads no faster than the loop. Leaving the loop ends it.
 *
 * It throws the signal's reason, or an error that would stay, such as InvalidArgument,
 * PermissionDenied, RevisionMismatch (the election has not reached the revision after: the store was
 * restored, or is another one) and HistoryCompacted (events after the cursor are no longer kept).
 */
export async function* watch(http: Http, request: WatchRequest): AsyncGenerator<News, never, void> {
  const watcher = new Watcher(request);
  const { signal, onConnection } = request;
  const retry = new Retry();
  for (;;) {
    retry.begin(signal);
    try {
      const onOpen = (): void => {
        watcher.connected();
        onConnection?.();
      };
      for await (const m of messages(http, { name: "watch", ...watcher.call(), onOpen, signal, idle: request.idle })) {
        for (const news of watcher.receive(m)) {
          retry.succeeded();
          yield news;
        }
      }
    } catch (e) {
      await retry.failed(e, signal, onConnection);
    }
  }
}
