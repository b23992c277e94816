import { Calls } from "./calls.ts";
import { Campaign, type Means } from "./campaign.ts";
import { defaultCandidate, idOf, type LeadOptions } from "./candidate.ts";
import { systemClock, type Clock } from "./clock.ts";
import { LeaseLost } from "./errors.ts";
import { Groups } from "./groups.ts";
import { Http, type TokenSource } from "./http.ts";
import type { Lease } from "./lease.ts";
import type { Log } from "./log.ts";
import { path } from "./wire.ts";

/** How a client calls its server. Everything may be left out. */
export interface ClientOptions {
  /** The candidate that leads, unless a call names another; by default one that no other process has. */
  candidate?: string;
  /** The bearer token that identifies the caller; a function is asked before each request. */
  token?: TokenSource;
  /**
   * Allows http:// to other machines. Keys and tokens can then be read, and used, on the way. Right only where
   * something else encrypts the connection, such as a tunnel.
   */
  insecure?: boolean;
  /** Gets a line when a lease is granted, cannot be renewed, is renewed again, and ends; by default nothing does. */
  log?: Log;
  /** Makes the requests; by default the global fetch. */
  fetch?: typeof fetch;
  /** Counts deadlines; by default systemClock(). */
  clock?: Clock;
}

/** Calls one server. The leases of a client are renewed together. */
export class Client {
  readonly #means: Means;
  readonly #candidate: string | undefined;
  #drawn: string | undefined;

  /** Does not connect. Throws InvalidArgument for an address that is wrong, or of another machine over http://. */
  constructor(server: string, options: ClientOptions = {}) {
    const clock = options.clock ?? systemClock();
    const call = options.fetch ?? globalThis.fetch;
    const http = new Http({ server, insecure: options.insecure ?? false, token: options.token, fetch: call, clock });
    const calls = new Calls(http);
    this.#means = { calls, groups: new Groups(calls), clock, log: options.log ?? (() => {}) };
    this.#candidate = options.candidate;
  }

  /**
   * Stands in line until it leads the election, and returns the lease, which is renewed in the background.
   *
   *     await using lease = await client.lead("reports", { signal });
   *     while (lease.valid()) await work(lease.token, lease.signal);
   *
   * The lease is released at the end of the block, after its body; without `await using`, call release in a
   * finally block, or use run. Throws the reason of the signal if that is aborted, and errors that another call
   * would not change. Nothing stays behind then: a lease that was granted at the last moment is released.
   */
  async lead(election: string, options: LeadOptions = {}): Promise<Lease> {
    path(election); // refuses a wrong name
    const candidate = idOf(options, () => this.#candidate ?? (this.#drawn ??= defaultCandidate()));
    return await new Campaign(this.#means, election, candidate, options).run();
  }

  /**
   * Leads once: calls the body when it leads, waits for it, and then releases the lease. Returns what the body
   * returns. Throws what lead and the body throw, and LeaseLost if the lease was over before the body returned.
   */
  async run<T>(election: string, body: (lease: Lease) => T | Promise<T>, options: LeadOptions = {}): Promise<T> {
    const lease = await this.lead(election, options);
    let result: T;
    let lost: LeaseLost | undefined;
    try {
      result = await body(lease);
    } finally {
      lease.valid();
      const { cause } = lease.term;
      if (cause instanceof LeaseLost && cause.end !== "RESIGNED") {
        lost = cause;
        lost.overran = lease.term.overran;
      }
      await lease.release();
    }
    if (lost) throw lost;
    return result;
  }

  /** @internal */
  get means(): Means {
    return this.#means;
  }
}
