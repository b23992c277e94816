import type { ElectionEvent, Succession } from "./schemas.ts";

/** @internal Returns the hand-over of a term after an event. */
export function successionAfter(s: Succession | undefined, e: ElectionEvent): Succession | undefined {
  const detail = (e.detail ?? {}) as { to?: string; candidateId?: string; endsBy?: string };
  const { to, candidateId } = detail;
  switch (e.type) {
    case "handingOver":
    case "assigned":
      return named(s, e, e.type === "assigned" ? candidateId : to, detail.endsBy);
    case "ready":
      return candidateId === undefined ? s : { ...(s ?? { untilMs: 0 }), to: candidateId, ready: true };
    case "yielded":
      return to === undefined ? s : { ...(s ?? { untilMs: 0 }), to, ready: true, yielded: true };
    case "goesOn":
    case "acquired":
      return undefined;
  }
  return e.leaderId === undefined ? undefined : s;
}

function named(s: Succession | undefined, e: ElectionEvent, to: string | undefined, endsBy: string | undefined): Succession | undefined {
  if (!to || to === e.leaderId || to === s?.to) return s;
  const left = Date.parse(endsBy ?? "") - Date.parse(e.at); // both by the store's clock
  return { to, since: e.at, untilMs: left > 0 ? left : 0, ready: false };
}

/** @internal What was heard of the hand-over of a term, in the order of revisions. */
export class HandOver {
  now: Succession | undefined;
  /** The leader has named a successor, or may have. */
  may = false;
  #at = -1; // the revision of now
  #changed: (() => void)[] = [];

  /** Takes what was heard at a revision. An answer that was given without a read of the election has nothing of the hand-over. */
  hear(revision: number, now: Succession | undefined): boolean {
    if (!(revision > this.#at || (revision === this.#at && now !== undefined))) return false;
    this.now = now;
    this.#at = revision;
    for (const changed of this.#changed.splice(0)) changed();
    return true;
  }

  /** Resolves at the next change. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#changed.push(resolve));
  }

  /** Whether the term may end with a yield. */
  get yields(): boolean {
    return this.may || this.now !== undefined;
  }
}
