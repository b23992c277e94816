-- The tables of Regent on Cloud Spanner. `regent migrate` and Terraform both read this file: statements end with a semicolon, comments
-- have a line of their own. Kept within what emulator 1.5.28 understands.

-- One row: the version of what follows, and lowest, that of the oldest programs that may use it: a fleet changes its program, and goes back,
-- while the tables are of the later version. Its column is at the end.
CREATE TABLE IF NOT EXISTS LeadershipSchema (
  version INT64 NOT NULL,
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
-- default_lease_ms, lock_delay_ms: of rows of schema version 1, which have no policy; NULL in all others.
-- ended_at, locked_until: when the last lease ended, and from when somebody may lead again; NULL while somebody leads.
CREATE TABLE IF NOT EXISTS Leadership (
  cluster_id       STRING(128) NOT NULL,
  schema_version   INT64 NOT NULL,
  fencing_token    INT64 NOT NULL,
  revision         INT64 NOT NULL,
  deleted          BOOL NOT NULL,
  default_lease_ms INT64,
  lock_delay_ms    INT64,
  leader_id        STRING(128),
  key_hash         BYTES(32),
  lease_ms         INT64,
  metadata         JSON,
  acquired_at      TIMESTAMP,
  renewed_at       TIMESTAMP OPTIONS (allow_commit_timestamp = true),
  prior_end        TIMESTAMP,
  ended_at         TIMESTAMP,
  locked_until     TIMESTAMP,
  needs            INT64,
  ends_by          TIMESTAMP,
  ends_because     STRING(64),
  policy           STRING(MAX),
  standing         STRING(MAX),
) PRIMARY KEY (cluster_id);

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

-- What schema version 1 lacked. In tables that were created above this changes nothing.
ALTER TABLE Leadership ALTER COLUMN default_lease_ms INT64;
ALTER TABLE Leadership ALTER COLUMN lock_delay_ms INT64;
ALTER TABLE Leadership ADD COLUMN IF NOT EXISTS needs INT64;
ALTER TABLE Leadership ADD COLUMN IF NOT EXISTS ends_by TIMESTAMP;
ALTER TABLE Leadership ADD COLUMN IF NOT EXISTS ends_because STRING(64);
ALTER TABLE Leadership ADD COLUMN IF NOT EXISTS policy STRING(MAX);
ALTER TABLE Leadership ADD COLUMN IF NOT EXISTS standing STRING(MAX);
ALTER TABLE LeadershipEvents ADD COLUMN IF NOT EXISTS actor STRING(MAX);
ALTER TABLE LeadershipEvents ADD COLUMN IF NOT EXISTS reason STRING(256);
ALTER TABLE LeadershipEvents ADD COLUMN IF NOT EXISTS detail STRING(MAX);

-- For the tick: which elections have a leader, and which are to be retired, and when. Both leave out the rows that have a NULL, and no
-- renewal changes their columns. retire_at: Record.RetireAt, for finding only; NULL if there is none.
ALTER TABLE Leadership ADD COLUMN IF NOT EXISTS retire_at TIMESTAMP;
CREATE NULL_FILTERED INDEX IF NOT EXISTS LeadershipHeld ON Leadership (cluster_id, leader_id);
CREATE NULL_FILTERED INDEX IF NOT EXISTS LeadershipRetirable ON Leadership (retire_at);

-- What leaders leave behind for their successors: a row for each log of an election, of the kind "checkpoint" or "journal", for ever. They
-- came without a new version: tables that were created before lack them until `regent migrate` ran.
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

ALTER TABLE LeadershipSchema ADD COLUMN IF NOT EXISTS lowest INT64;
