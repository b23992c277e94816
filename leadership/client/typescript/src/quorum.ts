import type { Http } from "./http.ts";
import type { Log } from "./log.ts";
import type { Term } from "./term.ts";
import { watch } from "./watch.ts";

/**
 * @internal Hears whether the leader may write, at the beginning of each connection and whenever that changes,
 * until the term is over. While there is no connection, what was heard last counts.
 */
export async function watchQuorum(http: Http, term: Term, log: Log): Promise<void> {
  const { election, candidate, signal } = term;
  try {
    for await (const news of watch(http, { election, members: true, signal })) {
      if (news.kind !== "member" || news.member.id !== candidate) continue;
      const { change } = news.member;
      if (change === "readOnly" || change === "writable") term.hearReadOnly(change === "readOnly");
    }
  } catch (reason) {
    if (!signal.aborted) log("info", "the leader does not hear whether its election is read-only", { election, candidate, reason });
  }
}
