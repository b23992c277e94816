import { about, checkData, get, post, type CallOptions } from "./api.ts";
import { Backoff } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { invalid, transient } from "./errors.ts";
import { misread, type Http } from "./http.ts";
import { persist, type Leader } from "./leader.ts";
import type { Proposal, Proposals } from "./schemas.ts";
import { onAbort, sleep } from "./wait.ts";
import { watch } from "./watch.ts";
import { candidateID, checkOptions, milliseconds, quote, text, type Duration } from "./wire.ts";

/** How to propose something. */
export interface ProposeOptions extends CallOptions {
  /** What the leader has to know: any JSON but null, of at most 2 KiB. */
  data?: unknown;
  /** How long the proposal is open, from 1 s to 24 h; 10 minutes by default. */
  ttl?: Duration | undefined;
  /** How long to wait for the decision, up to the ttl; 0 by default. */
  wait?: Duration | undefined;
  /** The proposer; by default the client's candidate. */
  candidate?: string | undefined;
}

/** The longest wait of one call, in milliseconds. */
const maxWait = 60_000;

/** @internal Reads the proposals of an election. */
export function proposals(http: Http, election: string, options: CallOptions = {}): Promise<Proposals> {
  return about(http, election, "proposals", "/proposals", get(options));
}

/** Accepts a proposal if it is the one that a call is about. */
function matched(name: string, proposal: Proposal, id: string): Proposal {
  if (proposal.proposalId !== id) throw misread({ name, changes: true }, `it is about proposal ${quote(proposal.proposalId)}, not ${quote(id)}`);
  return proposal;
}

/** @internal See Client.propose. It asks again when a call has waited for as long as one may, and after what may pass. */
export async function propose(http: Http, clock: Clock, election: string, proposalId: string, kind: string, candidate: string, o: ProposeOptions): Promise<Proposal> {
  const [ttl, all] = [milliseconds("ttl", o.ttl ?? "10m"), milliseconds("wait", o.wait ?? 0)];
  if (all > ttl) throw invalid(`wait: the proposal is kept for ${ttl} ms, so wait for no longer than that, and not for ${all} ms`);
  if (o.data !== undefined) checkData("data", o.data);
  const what = { candidateId: candidateID(candidate), proposalId, kind, data: o.data, ttl: text(ttl) };
  const end = clock.now() + all;
  for (const backoff = new Backoff(); ; ) {
    const wait = Math.max(0, Math.min(Math.ceil(end - clock.now()), maxWait));
    try {
      const call = about<Proposal>(http, election, "propose", ":propose", { body: { ...what, wait: text(wait) }, changes: true, wait, signal: o.signal });
      const proposal = matched("propose", await call, proposalId);
      if (proposal.decision || clock.now() >= end) return proposal;
    } catch (e) {
      if (o.signal?.aborted || !transient(e) || clock.now() >= end) throw e;
      await sleep(clock, Math.min(backoff.after(e), end - clock.now()), o.signal);
    }
  }
}

/** @internal Decides a proposal. */
export function decide(leader: Leader, id: string, verdict: "accepted" | "rejected", note: string, options: CallOptions): Promise<Proposal> {
  return persist(leader, options, async (r, { signal }) => {
    const reply = await post<Proposal>(leader.http, ":decide", r, { proposalId: id, verdict, note: note === "" ? undefined : note }, { signal });
    return matched("decide", reply, id);
  });
}

/** @internal See Lease.asked. A stream tells beside that there may be proposals; the loop reads them. */
export async function* asked({ http, term }: Leader, options: CallOptions): AsyncGenerator<Proposal, void, undefined> {
  checkOptions(options);
  const { election, candidate, clock, signal } = term;
  const end = new AbortController();
  let news = true;
  let wake = (): void => {};
  const tell = (): void => {
    news = true;
    wake();
  };
  const stop = (): void => {
    end.abort();
    wake();
  };
  const leave = [onAbort(signal, stop), onAbort(options.signal, stop)];
  const over = (): boolean => signal.aborted || options.signal?.aborted === true;
  let failure: unknown;
  const listen = async (): Promise<void> => {
    const onConnection = (error?: unknown): void => void (error === undefined && tell());
    for await (const n of watch(http, { election, members: true, onConnection, signal: end.signal })) {
      if (n.kind === "member" && n.member.id === candidate && n.member.change === "asked") tell();
    }
  };
  listen().catch((e: unknown) => {
    failure = e;
    stop();
  });
  try {
    let seen = new Set<string>();
    for (const backoff = new Backoff(); !over(); ) {
      if (!news) {
        if (end.signal.aborted) throw failure;
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      news = false;
      let open: Proposal[];
      try {
        ({ open } = await proposals(http, election, { signal: end.signal }));
      } catch (e) {
        if (over()) return;
        if (!transient(e)) throw e;
        news = true;
        await sleep(clock, backoff.after(e), end.signal);
        continue;
      }
      backoff.reset();
      const fresh = open.filter((p) => !seen.has(p.proposalId));
      seen = new Set(open.map((p) => p.proposalId));
      for (const p of fresh) if (!over()) yield p;
    }
  } finally {
    for (const end of leave) end();
    end.abort();
  }
}
