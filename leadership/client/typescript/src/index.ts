export { Client, type ClientOptions } from "./client.ts";
export { cksumPriority, defaultCandidate, type LeadOptions } from "./candidate.ts";
export { systemClock, type Clock } from "./clock.ts";
export {
  Draining, DepthExceeded, ElectionDeleted, HistoryCompacted, IndexMismatch, Internal, InvalidArgument, LeaseHeld, LeaseLost, LimitExceeded,
  MethodNotAllowed, NotAcceptable, NotEligible, NotFound, NotReady, OutcomeUnknown, PayloadTooLarge, PermissionDenied, RateLimited, ReadOnly,
  RecordCorrupt, RecordTooNew, RegentError, RequestTimeout, RevisionMismatch, StoreUnavailable, TokenStale, URITooLong, Unauthenticated,
  UnsupportedMediaType, errorClasses, type Details, type End, type Problem,
} from "./errors.ts";
export type { Credential } from "./http.ts";
export type { Lease } from "./lease.ts";
export type { Log } from "./log.ts";
export type { Notice } from "./notice.ts";
export type { Report } from "./report.ts";
export type { Duration, Election, Schemas } from "./wire.ts";
export type { CallOptions, CheckOptions, EventsOptions, ListOptions, ReadOptions } from "./api.ts";
export { NotFollowed, type RunOptions } from "./ending.ts";
export { fenceSchema, guard, type Transaction, type Writer } from "./fence.ts";
export type { Named, OnSuccession, SuccessionOptions } from "./heir.ts";
export type { Entry, Journal } from "./journal.ts";
export type { FollowOptions, JournalItem } from "./journal_reader.ts";
export type { ReleaseOptions } from "./outcome.ts";
export type { CheckpointOptions, DelegationLimits, HandOverOptions, LeaderCheckpoint, RequestApprovalOptions, StepDownOptions } from "./leader.ts";
export type { Member, MemberOptions, Told } from "./member.ts";
export type { Observable, ObserveOptions, Observed } from "./observe.ts";
export type { ProposeOptions } from "./proposals.ts";
export type * from "./schemas.ts";
export { fileCredential, metadataCredential } from "./credentials.ts";
export { BadStatement, verifyStatement, type Statement, type StatementKeys, type VerifyOptions } from "./statement.ts";
export type { News, WatchRequest } from "./watch.ts";
