import type { components, operations } from "./openapi.ts";

type Schemas = components["schemas"];

/** An election at one point in time, as a reader sees it. */
export type ElectionState = Schemas["Reading"];
/** One revision of an election. Later versions of the server add types: ignore those that you do not know. */
export type ElectionEvent = Schemas["Event"];
export type ElectionPage = Schemas["Page"];
/** A member that has come or gone. */
export type MemberChange = Schemas["StreamMember"];
/** An election as a cluster. */
export type Members = Schemas["Members"];
export type Acknowledgement = Schemas["Acknowledgement"];
/** Why a candidate does not lead. */
export type Explanation = operations["explain"]["responses"][200]["content"]["application/json"];
export type Override = Schemas["Override"];
export type Tree = Schemas["Tree"];
export type Succession = Schemas["Succession"];
export type Checkpoint = Schemas["Checkpoint"];
/** What an earlier leader has left behind. */
export type Inheritance = Schemas["Inheritance"];
/** What a leader has noted before it caused it. */
export type Effect = Schemas["Effect"];
export type Effects = Schemas["Effects"];
/** What the leader of an election is asked. Without a decision it is open. */
export type Proposal = Schemas["Proposal"];
export type Proposals = Schemas["Proposals"];
export type JournalHead = Schemas["JournalHead"];
export type JournalPage = Schemas["JournalPage"];
export type JournalEntry = Schemas["JournalEntry"];
export type JournalSnapshot = Schemas["JournalSnapshot"];
export type JoinRequest = Schemas["JoinRequest"];
