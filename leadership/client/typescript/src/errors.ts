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

export class InvalidArgument extends RegentError {
  static override readonly code = "INVALID_ARGUMENT";
  static override readonly status = 400;
}
export class Unauthenticated extends RegentError {
  static override readonly code = "UNAUTHENTICATED";
  static override readonly status = 401;
}
export class PermissionDenied extends RegentError {
  static override readonly code = "PERMISSION_DENIED";
  static override readonly status = 403;
}
export class NotFound extends RegentError {
  static override readonly code = "NOT_FOUND";
  static override readonly status = 404;
}
export class MethodNotAllowed extends RegentError {
  static override readonly code = "METHOD_NOT_ALLOWED";
  static override readonly status = 405;
}
export class NotAcceptable extends RegentError {
  static override readonly code = "NOT_ACCEPTABLE";
  static override readonly status = 406;
}
export class RequestTimeout extends RegentError {
  static override readonly code = "REQUEST_TIMEOUT";
  static override readonly status = 408;
}
/** Another candidate leads, or comes first. */
export class LeaseHeld extends RegentError {
  static override readonly code = "LEASE_HELD";
  static override readonly status = 409;
}

/** Why a lease has ended. */
export type End =
  | "LEASE_LOST" // the server says that another candidate may lead
  | "ELECTION_DELETED" // an operator has deleted the election
  | "DEADLINE" // no renewal was answered before the deadline, or the term has ended
  | "ORPHANED" // the lease that it stands on has ended
  | "RESIGNED"; // it was released

/** The lease has ended: stop now. `end` says why. */
export class LeaseLost extends RegentError {
  static override readonly code = "LEASE_LOST";
  static override readonly status = 409;
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
export class TokenStale extends RegentError {
  static override readonly code = "TOKEN_STALE";
  static override readonly status = 409;
}
export class ElectionDeleted extends RegentError {
  static override readonly code = "ELECTION_DELETED";
  static override readonly status = 409;
}
export class NotEligible extends RegentError {
  static override readonly code = "NOT_ELIGIBLE";
  static override readonly status = 409;
}
export class NotReady extends RegentError {
  static override readonly code = "NOT_READY";
  static override readonly status = 409;
}
export class DepthExceeded extends RegentError {
  static override readonly code = "DEPTH_EXCEEDED";
  static override readonly status = 409;
}
export class IndexMismatch extends RegentError {
  static override readonly code = "INDEX_MISMATCH";
  static override readonly status = 409;
}
export class ReadOnly extends RegentError {
  static override readonly code = "READ_ONLY";
  static override readonly status = 409;
}
export class LimitExceeded extends RegentError {
  static override readonly code = "LIMIT_EXCEEDED";
  static override readonly status = 409;
}
export class HistoryCompacted extends RegentError {
  static override readonly code = "HISTORY_COMPACTED";
  static override readonly status = 410;
}
export class RevisionMismatch extends RegentError {
  static override readonly code = "REVISION_MISMATCH";
  static override readonly status = 412;
}
export class PayloadTooLarge extends RegentError {
  static override readonly code = "PAYLOAD_TOO_LARGE";
  static override readonly status = 413;
}
export class URITooLong extends RegentError {
  static override readonly code = "URI_TOO_LONG";
  static override readonly status = 414;
}
export class UnsupportedMediaType extends RegentError {
  static override readonly code = "UNSUPPORTED_MEDIA_TYPE";
  static override readonly status = 415;
}
export class RateLimited extends RegentError {
  static override readonly code = "RATE_LIMITED";
  static override readonly status = 429;
}
export class Internal extends RegentError {
  static override readonly code = "INTERNAL";
  static override readonly status = 500;
}
export class RecordCorrupt extends RegentError {
  static override readonly code = "RECORD_CORRUPT";
  static override readonly status = 500;
}
export class RecordTooNew extends RegentError {
  static override readonly code = "RECORD_TOO_NEW";
  static override readonly status = 503;
}
/** Nothing was done: the server or its store was not reached, or the call changes nothing. */
export class StoreUnavailable extends RegentError {
  static override readonly code = "STORE_UNAVAILABLE";
  static override readonly status = 503;
}
export class Draining extends RegentError {
  static override readonly code = "DRAINING";
  static override readonly status = 503;
}
/** It may have been done: the same call again finds out. */
export class OutcomeUnknown extends RegentError {
  static override readonly code = "OUTCOME_UNKNOWN";
  static override readonly status = 504;
}

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
