import { invalid } from "./errors.ts";
import type { Http } from "./http.ts";
import type { ElectionEvent, ElectionState } from "./schemas.ts";
import { watch, type WatchRequest } from "./watch.ts";
import { quote } from "./wire.ts";

/** What observe tells: an event, or the state of an election when the loop begins. */
export interface Observed {
  election: string;
  revision: number;
  /** What has happened, such as "acquired"; undefined for a state. Ignore those that you do not know. */
  type?: string;
  /** By the store's clock. */
  at: string;
  /** The leader after the event; undefined if there is none. */
  leaderId?: string;
  /** The token of the leader or, if there is none, of the last one. */
  fencingToken: number;
  /** The whole event; undefined for a state. */
  event?: ElectionEvent;
  /** The whole state; undefined for an event. */
  state?: ElectionState;
  /** Continues after this one, as the option `after`; undefined where one cannot continue. */
  cursor?: string;
}

export interface ObserveOptions {
  /** The cursor of the last one that was seen, for one election also its revision. Without it the loop begins with the present state. */
  after?: string | number | undefined;
  /** Called without an error when the loop is connected, and with one when the connection was lost or could not be made. */
  onConnection?: ((error?: unknown) => void) | undefined;
  /** Ends the loop, which then throws its reason. */
  signal?: AbortSignal | undefined;
}

/** Which elections to observe: one by its name, all whose names begin so, or one with its seats. */
export type Observable = string | { prefix: string } | { of: string };

function requestFor(what: Observable, options: ObserveOptions): WatchRequest {
  if (typeof what === "string") return { ...options, election: what };
  if (typeof what === "object" && what !== null && "of" in what && typeof what.of === "string") return { ...options, of: what.of };
  if (typeof what !== "object" || what === null || !("prefix" in what) || typeof what.prefix !== "string") {
    throw invalid(`observe: name an election, or { prefix: "orders." }, or { of: "gpu" }, not ${quote(what)}`);
  }
  return { ...options, prefix: what.prefix };
}

/** @internal See Client.observe. */
export async function* observe(http: Http, what: Observable, options: ObserveOptions = {}): AsyncGenerator<Observed, never, void> {
  let last: Observed | undefined; // of the states of all elections; the last one has the cursor
  for await (const news of watch(http, requestFor(what, options))) {
    if (news.kind === "ready") {
      if (last) yield { ...last, cursor: news.cursor };
      last = undefined;
    } else if (news.kind === "event") {
      yield { ...about(news.event), type: news.event.type, at: news.event.at, event: news.event, cursor: news.cursor };
    } else if (news.kind === "state") {
      const state: Observed = { ...about(news.state), at: news.state.readAt, state: news.state };
      if (news.cursor !== "") {
        yield { ...state, cursor: news.cursor };
        continue;
      }
      if (last) yield last;
      last = state;
    }
  }
  throw new Error("a watch ends with an error");
}

function about({ election, revision, leaderId, fencingToken }: ElectionEvent | ElectionState): Omit<Observed, "at"> {
  return { election, revision, fencingToken, ...(leaderId === undefined ? {} : { leaderId }) };
}
