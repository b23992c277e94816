-- The tables of Regent on Cloud Spanner. `regent admin migrate` and Terraform both read this file: statements end with a semicolon, comments
-- have a line of their own. Kept within what emulator 1.5.28 understands.

-- One row: the version of what follows, and lowest, that of the oldest programs that may use it: a fleet changes its program, and goes back,
-- while the tables are of the later version.
CREATE TABLE IF NOT EXISTS LeadershipSchema (
  version INT64 NOT NULL,
  lowest  INT64 NOT NULL,
) PRIMARY KEY ();

-- One row for each election, for ever: a deleted election is a tombstone, so that its fencing token never goes back.
-- From leader_id to prior_end: of the lease, all NULL (metadata may always be) while nobody leads.
-- renewed_at: when the last heartbeat, a grant or a renewal, was committed.
-- acquired_at: when the grant was committed, from the first renewal on; until then that is renewed_at, and this is when the grant was decided.
-- prior_end: when it had to be committed, if it was a renewal; NULL after a grant. A renewal that was committed no earlier does not count.
-- The lease ends lease_ms after renewed_at or, if renewed_at is not before prior_end, at prior_end. No column holds the end, for a generated
-- one may not depend on a commit timestamp.
-- ends_by, ends_because: the instant that no heartbeat extends the lease beyond, and why; NULL if there is none.
-- needs: the lowest version of the program that may decide on the row. policy, standing: JSON text that only the program looks into.
-- ended_at, locked_until: when the last lease ended, and from when somebody may lead again; NULL while somebody leads.
-- retire_at: Record.DueAt, for finding only; NULL if there is none. No renewal changes it.
CREATE TABLE IF NOT EXISTS Leadership (
  cluster_id     STRING(128) NOT NULL,
  schema_version INT64 NOT NULL,
  fencing_token  INT64 NOT NULL,
  revision       INT64 NOT NULL,
  deleted        BOOL NOT NULL,
  needs          INT64 NOT NULL,
  leader_id      STRING(128),
  key_hash       BYTES(32),
  lease_ms       INT64,
  metadata       JSON,
  acquired_at    TIMESTAMP,
  renewed_at     TIMESTAMP OPTIONS (allow_commit_timestamp = true),
  prior_end      TIMESTAMP,
  ended_at       TIMESTAMP,
  locked_until   TIMESTAMP,
  ends_by        TIMESTAMP,
  ends_because   STRING(64),
  policy         STRING(MAX),
  standing       STRING(MAX),
  retire_at      TIMESTAMP,
) PRIMARY KEY (cluster_id);

-- For the tick: which elections have a leader, and which are to be retired, or have seats that have not heard of a change, and when. Both leave out the rows that have a NULL.
CREATE NULL_FILTERED INDEX IF NOT EXISTS LeadershipHeld ON Leadership (cluster_id, leader_id);
CREATE NULL_FILTERED INDEX IF NOT EXISTS LeadershipRetirable ON Leadership (retire_at);

-- One row for each event. It changes only in pending, which is true until the event is announced and then NULL, and in delete_after.
-- delete_after: NULL while the event is its election's newest, without which the record would count as corrupt; from when on it may be
-- deleted once there is a later one.
-- shard: of the election's name, so that an index by time has no end at which all new rows meet.
-- Interleaved: a change and its events commit in one place, and an election that has a history cannot be removed by accident.
CREATE TABLE IF NOT EXISTS LeadershipEvents (
  cluster_id         STRING(128) NOT NULL,
  revision           INT64 NOT NULL,
  type               STRING(64) NOT NULL,
  fencing_token      INT64 NOT NULL,
  leader_id          STRING(128),
  previous_leader_id STRING(128),
  request_id         STRING(MAX),
  committed_at       TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
  shard              INT64 NOT NULL,
  pending            BOOL,
  delete_after       TIMESTAMP,
  actor              STRING(MAX),
  reason             STRING(256),
  detail             STRING(MAX),
) PRIMARY KEY (cluster_id, revision),
  INTERLEAVE IN PARENT Leadership ON DELETE NO ACTION,
  ROW DELETION POLICY (OLDER_THAN(delete_after, INTERVAL 0 DAY));

-- The outbox: only events that are not announced.
CREATE NULL_FILTERED INDEX IF NOT EXISTS LeadershipEventsPending
  ON LeadershipEvents (cluster_id, revision, pending);

-- What happened lately, in all elections.
CREATE INDEX IF NOT EXISTS LeadershipEventsByTime
  ON LeadershipEvents (shard, committed_at);

-- What leaders leave behind for their successors: a row for each log of an election, of the kind "checkpoint" or "journal", for ever.
-- text: JSON text that guards the log; body: what else it holds. Only the program looks into both.
CREATE TABLE IF NOT EXISTS LeadershipLogs (
  cluster_id     STRING(128) NOT NULL,
  kind           STRING(32) NOT NULL,
  schema_version INT64 NOT NULL,
  text           STRING(MAX) NOT NULL,
  body           STRING(MAX) NOT NULL,
  written_at     TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
) PRIMARY KEY (cluster_id, kind);

-- The entries of logs, as they were appended together. A snapshot stands for all entries up to last_index.
-- place: last_index, or 0 for the snapshot, of which there is one at most.
CREATE TABLE IF NOT EXISTS LeadershipLogSegments (
  cluster_id   STRING(128) NOT NULL,
  kind         STRING(32) NOT NULL,
  place        INT64 NOT NULL,
  first_index  INT64 NOT NULL,
  last_index   INT64 NOT NULL,
  data         STRING(MAX) NOT NULL,
  committed_at TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
) PRIMARY KEY (cluster_id, kind, place),
  INTERLEAVE IN PARENT LeadershipLogs ON DELETE NO ACTION;
