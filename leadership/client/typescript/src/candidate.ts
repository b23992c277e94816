import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { invalid } from "./errors.ts";
import type { SuccessionOptions } from "./heir.ts";
import type { Lease } from "./lease.ts";
import type { Log } from "./log.ts";
import { metadata } from "./credentials.ts";
import { candidateID, milliseconds, quote, type Duration, type Schemas } from "./wire.ts";

/** How a candidate campaigns. Everything may be left out. */
export interface LeadOptions extends SuccessionOptions {
  /**
   * Should be unique in the election: a second process with the same id cannot lead while the first one does. By
   * default that of the client, or of `via`.
   */
  candidate?: string | undefined;
  /** How long the lease lasts without a renewal, from 1 s to 24 h; by default as the election is configured. */
  lease?: Duration | undefined;
  /**
   * How long to stand in line; by default until it leads. 0: throw LeaseHeld at once if another candidate leads.
   * Throws LeaseHeld, or what failed last, when the time is over; within 15 s after it if the server does not answer.
   */
  wait?: Duration | undefined;
  /**
   * How long before the end of its lease a leader stops believing in it: the time it needs to stop what it is
   * doing. By default a tenth of the lease, at most one second.
   */
  margin?: Duration | undefined;
  /**
   * Ends the wait, and the term: then the lease's signal fires, and the lease is released after the body.
   */
  signal?: AbortSignal | undefined;
  /** A JSON object that describes the leader to readers, such as its address. */
  metadata?: Record<string, unknown> | undefined;
  /** One line that says what the candidate will do with its lease. */
  note?: string | undefined;

  // What follows counts where the election's policy says so.

  /** A `witness` stands in line, counts for the quorum, and is never granted the lease. */
  role?: "candidate" | "witness" | undefined;
  /** From -2^31 to 2^31-1, a greater one is better; or "cksum", which every program computes alike from the candidate's id. */
  priority?: number | "cksum" | undefined;
  /** Names such as "gpu". */
  capabilities?: readonly string[] | ReadonlySet<string> | undefined;
  /** A smaller one is better. A function is asked before each call. */
  load?: number | (() => number) | undefined;

  /** A lease of the same candidate, which the new one stands on: it ends with that one at the latest. */
  via?: Lease | undefined;
  /** The name under which the service knows the one that has granted `via`; left out if both are the same. */
  viaPeer?: string | undefined;
  /** Asks for the checkpoint that the last leader has left, for effects that earlier leaders have not finished, and for open proposals. */
  inherit?: boolean | undefined;
  /** Asks for a signed statement with the grant and each renewal: see Lease.statement. The lease is then renewed by itself. */
  statement?: boolean | undefined;
}

const maxMargin = 1000;

/** @internal Returns the margin of a lease, in whole milliseconds. */
export function marginOf(o: LeadOptions, lease: number): number {
  const margin = o.margin === undefined ? Math.ceil(Math.min(lease / 10, maxMargin)) : milliseconds("margin", o.margin);
  if (lease > 0 && margin >= lease) {
    throw invalid(`margin: ${margin} ms leave nothing of a lease of ${lease} ms; ask for a longer lease, or use a shorter margin`);
  }
  return margin;
}

/** @internal Returns what does not change between the calls of a campaign. */
export function candidacy(o: LeadOptions, candidate: string): Omit<Schemas["AcquireRequest"], "key"> {
  if (typeof o.capabilities === "string") throw invalid(`capabilities: they are several, as in [${quote(o.capabilities)}]`);
  const capabilities = [...new Set(o.capabilities ?? [])].sort();
  for (const name of capabilities) {
    if (typeof name !== "string" || !/^[A-Za-z0-9._@:-]{1,64}$/.test(name)) throw invalid(`capabilities: ${quote(name)} is no name of A-Z, a-z, 0-9 and "._@:-"`);
  }
  const priority = o.priority === "cksum" ? cksumPriority(candidate) : (o.priority ?? 0);
  if (!Number.isSafeInteger(priority)) throw invalid(`priority: ${quote(o.priority)} is no integer and not "cksum"`);
  if (o.viaPeer !== undefined && !o.via) throw invalid("viaPeer: it needs the lease that this peer has granted; set via");
  const lease = o.lease === undefined ? 0 : milliseconds("lease", o.lease);
  marginOf(o, lease);
  return {
    candidateId: candidate,
    ...(o.lease === undefined ? {} : { leaseDuration: `${lease}ms` }),
    ...(o.metadata ? { metadata: o.metadata as Schemas["Metadata"] } : {}),
    ...(o.note ? { note: o.note } : {}),
    ...(o.role ? { role: o.role } : {}),
    ...(priority ? { priority } : {}),
    ...(capabilities.length ? { capabilities } : {}),
    ...(o.inherit ? { inherit: true } : {}),
    ...(o.statement ? { statement: true } : {}),
  };
}

/** @internal Returns the candidate's id: that of the options, of the lease it stands on, or the client's. */
export async function idOf(o: LeadOptions, own: () => string | Promise<string>): Promise<string> {
  const id = candidateID(o.candidate ?? o.via?.candidate ?? (await own()));
  if (o.via && id !== o.via.candidate) throw invalid(`candidate: ${id} cannot stand on the lease of ${o.via.candidate}; leave it out`);
  return id;
}

/**
 * Returns the id of this host's candidate, the same after a restart, so that orders against it hold: the host's name
 * or, on Cloud Run, where all hosts have one name, that of the service and the end of the instance's id, or of the job
 * and the number of the task. Where there is no such name it ends with 64 random bits, and the log gets a line.
 */
export async function defaultCandidate(log?: Log): Promise<string> {
  const { CLOUD_RUN_JOB: job, CLOUD_RUN_TASK_INDEX: task, K_SERVICE: service } = process.env;
  let name = hostname();
  let stable = !["", "localhost"].includes(name.split(".")[0]!.toLowerCase());
  if (job) {
    [name, stable] = [`${job}-${task ?? ""}`, true];
  } else if (service) {
    const instance = (await metadata("id", 1_000).catch(() => "")).slice(-12);
    [name, stable] = [`${service}.${instance}`, instance !== ""];
  }
  if (!stable) name = `${(name || "agent").replace(/\.$/, "")}.${randomBytes(8).toString("hex")}`;
  let id = name.replace(/[^A-Za-z0-9._@:-]/gu, "-");
  if (id.length > 128) id = `${id.slice(0, 111)}.${createHash("sha256").update(name).digest("hex").slice(0, 16)}`;
  if (!stable) log?.("warn", "this host has no name of its own: the candidate is another one after a restart, and no order against it holds; give the client a candidate", { candidate: id });
  return id;
}

/**
 * Returns the priority that every program computes alike from a candidate's id: the checksum that POSIX's
 * cksum prints for it without an end of line, less 2^31.
 */
export function cksumPriority(id: string): number {
  const bytes = [...Buffer.from(id)];
  for (let length = bytes.length; length > 0; length >>>= 8) bytes.push(length & 0xff);
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) sum = (sum << 1) ^ (sum < 0 ? 0x04c11db7 : 0);
  }
  return (~sum >>> 0) - 2 ** 31;
}
