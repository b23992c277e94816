import type { components } from "./openapi.ts";

/** A problem document of the server, or of one entry of a batch. */
export type Problem = components["schemas"]["Problem"];

/** What is known of an error beside its message. */
export interface Details {
  cause?: unknown;
  /** What the server has said. */
  problem?: Problem;
  /** Milliseconds after which a repetition may help. */
  retryAfter?: number;
}

/**
 * The base of all errors of this package. There is a class for each code of the API, so that
 * `error instanceof LeaseHeld` and `error.code === "LEASE_HELD"` say the same. A code of a newer
 * server has no class. No error contains a key of a lease or a credential.
 */
export class RegentError extends Error {
  static readonly code: string = "";
  static readonly status: number = 0;
  /** The stable code, as in openapi.yaml; "" if the error has none. */
  readonly code: string;
  /** What the server has said; undefined if it did not say it, as when it did not answer. */
  declare readonly problem?: Problem;
  /** Milliseconds after which a repetition may help; 0 if unknown. */
  readonly retryAfter: number;

  constructor(message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    const of = new.target as typeof RegentError;
    Object.defineProperty(this, "name", { value: of.name, configurable: true });
    this.code = details.problem?.code ?? of.code;
    if (details.problem) this.problem = details.problem;
    const retryAfter: unknown = details.retryAfter ?? details.problem?.retryAfterMs;
    this.retryAfter = typeof retryAfter === "number" && Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter : 0;
  }

  /** Why, where the code alone does not say it, such as EPOCH or LOCK_DELAY; "" for none. */
  get reason(): string {
    return this.problem?.reason ?? "";
  }

  /** The HTTP status that the code has, or that the server sent with a code of a newer version. */
  get status(): number {
    return (this.constructor as typeof RegentError).status || (this.problem?.status ?? 0);
  }
}

/** Returns the base of the class of a code, which has this HTTP status. */
function coded<C extends string>(code: C, status: number) {
  return class extends RegentError {
    static override readonly code = code;
    static override readonly status = status;
  };
}

export class InvalidArgument extends coded("INVALID_ARGUMENT", 400) {}
export class Unauthenticated extends coded("UNAUTHENTICATED", 401) {}
export class PermissionDenied extends coded("PERMISSION_DENIED", 403) {}
export class NotFound extends coded("NOT_FOUND", 404) {}
export class MethodNotAllowed extends coded("METHOD_NOT_ALLOWED", 405) {}
export class NotAcceptable extends coded("NOT_ACCEPTABLE", 406) {}
export class RequestTimeout extends coded("REQUEST_TIMEOUT", 408) {}
/** Another candidate leads, or comes first. */
export class LeaseHeld extends coded("LEASE_HELD", 409) {}

/** Why a lease has ended. */
export type End =
  | "LEASE_LOST" // the server says that another candidate may lead
  | "ELECTION_DELETED" // an operator has deleted the election
  | "DEADLINE" // no renewal was answered before the deadline, or the term has ended
  | "ORPHANED" // the lease that it stands on has ended
  | "RESIGNED"; // it was released

/** The lease has ended: stop now. `end` says why. */
export class LeaseLost extends coded("LEASE_LOST", 409) {
  readonly end: End;
  /**
   * The body was still running when the lease ended in the store, after the deadline and the
   * margin. There may have been two leaders, and only the fencing token protected.
   */
  overran = false;

  constructor(message: string, details: Details & { end?: End } = {}) {
    super(message, details);
    this.end = details.end ?? "LEASE_LOST";
  }
}
export class TokenStale extends coded("TOKEN_STALE", 409) {}
export class ElectionDeleted extends coded("ELECTION_DELETED", 409) {}
export class NotEligible extends coded("NOT_ELIGIBLE", 409) {}
export class NotReady extends coded("NOT_READY", 409) {}
export class DepthExceeded extends coded("DEPTH_EXCEEDED", 409) {}
export class IndexMismatch extends coded("INDEX_MISMATCH", 409) {}
export class ReadOnly extends coded("READ_ONLY", 409) {}
export class LimitExceeded extends coded("LIMIT_EXCEEDED", 409) {}
export class HistoryCompacted extends coded("HISTORY_COMPACTED", 410) {}
export class RevisionMismatch extends coded("REVISION_MISMATCH", 412) {}
export class PayloadTooLarge extends coded("PAYLOAD_TOO_LARGE", 413) {}
export class URITooLong extends coded("URI_TOO_LONG", 414) {}
export class UnsupportedMediaType extends coded("UNSUPPORTED_MEDIA_TYPE", 415) {}
export class RateLimited extends coded("RATE_LIMITED", 429) {}
export class Internal extends coded("INTERNAL", 500) {}
export class RecordCorrupt extends coded("RECORD_CORRUPT", 500) {}
export class RecordTooNew extends coded("RECORD_TOO_NEW", 503) {}
/** Nothing was done: the server or its store was not reached, or the call changes nothing. */
export class StoreUnavailable extends coded("STORE_UNAVAILABLE", 503) {}
export class Draining extends coded("DRAINING", 503) {}
/** It may have been done: the same call again finds out. */
export class OutcomeUnknown extends coded("OUTCOME_UNKNOWN", 504) {}

/** The class of each code. */
export const errorClasses: Readonly<Record<string, typeof RegentError>> = Object.freeze(
  Object.fromEntries(
    [
      InvalidArgument, Unauthenticated, PermissionDenied, NotFound, MethodNotAllowed, NotAcceptable, RequestTimeout, LeaseHeld,
      LeaseLost, TokenStale, ElectionDeleted, NotEligible, NotReady, DepthExceeded, IndexMismatch, ReadOnly, LimitExceeded,
      HistoryCompacted, RevisionMismatch, PayloadTooLarge, URITooLong, UnsupportedMediaType, RateLimited, Internal,
      RecordCorrupt, RecordTooNew, StoreUnavailable, Draining, OutcomeUnknown,
    ].map((c) => [c.code, c]),
  ),
);

/** @internal Returns the error that a problem document says. */
export function ofProblem(call: string, problem: Problem): RegentError {
  const of = Object.hasOwn(errorClasses, problem.code) ? errorClasses[problem.code]! : RegentError;
  return new of(`${call}: ${problem.detail} (${problem.code})`, { problem });
}

/** @internal Reports whether the same call may succeed soon. */
export function transient(error: unknown): error is RegentError {
  if (!(error instanceof RegentError)) return false;
  // a server that may not know a new signing key yet, or a peer that could not be asked, says when to retry
  if (error instanceof Unauthenticated || error instanceof NotEligible) return error.retryAfter > 0;
  return error.status >= 500 || error.status === 408 || error.status === 429;
}

/** @internal Returns an InvalidArgument that this package has found itself. */
export function invalid(message: string): InvalidArgument {
  return new InvalidArgument(message);
}
