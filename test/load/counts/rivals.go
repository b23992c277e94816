package main

// Rival is what another system needs for the same, with its own defaults.
type Rival struct {
	Name  string
	Lease string // its default
	// Calls of the server in an hour: of a process that leads an election, and of each waiting
	// candidate.
	Leading, Waiting int
	Writes           int // of Leading, durable ones
	Why              string
	Source           string
}

// Rivals returns what others need according to their source, read at the commits that are named.
func Rivals() []Rival {
	return []Rival{
		{
			Name: "client-go on Kubernetes", Lease: "15 s", Leading: 1800, Waiting: 1125, Writes: 1800,
			Why: "The leader sends a PUT each `RetryPeriod` (2 s), and each is a write of the cluster's etcd. A waiting candidate sends a GET each 2 to 4.4 s (`JitterFactor` 1.2): " +
				"818 to 1,800, on average 1,125.",
			Source: "kubernetes/client-go `tools/leaderelection/leaderelection.go` at 32ce75a7 (July 2026)",
		},
		{
			Name: "etcd `concurrency`", Lease: "60 s", Leading: 180, Waiting: 180,
			Why: "A session sends a keep-alive each third of its TTL on an open stream; etcd's leader notes it in memory, and nothing durable says that the lease goes on. " +
				"A waiting candidate needs a session of its own, kept alive like the leader's, and one watch.",
			Source: "etcd-io/etcd `client/v3/concurrency/session.go` and `key.go`, `client/v3/lease.go`, `server/lease/lessor.go` at c34dc7ee (August 2026)",
		},
		{
			Name: "Consul, `api.Lock`", Lease: "15 s", Leading: 480 + 12, Waiting: 480 + 240,
			Why: "A session is renewed each half of its TTL, in memory; a lock makes its own, unless it is given one. The leader watches its key by long polls of 5 minutes and a little, " +
				"which is their default by its documentation; a waiting candidate has a session too, and long polls of 15 s.",
			Source: "hashicorp/consul `api/lock.go` at 14691f7e; \"Blocking Queries\" in the documentation of its API (v1.9)",
		},
		{
			Name: "spindle on Spanner", Lease: "10 s", Leading: 360 + 3*480, Waiting: 360, Writes: 480,
			Why: "Every candidate asks with one query each `duration` (10 s). The leader's heartbeat is a transaction of two statements and a commit each 5 to 10 s, at random: " +
				"360 to 720, on average 480. Each call of `HasLock()` is one more query.",
			Source: "flowerinthenight/spindle `spindle.go` at 45e640f7 (May 2025, after v2.2.0)",
		},
		{
			Name: "DynamoDB lock client", Lease: "20 s", Leading: 720, Waiting: 3600, Writes: 720,
			Why:    "The leader sends an UpdateItem each 5 s for each lock, a waiting candidate a strong GetItem each second, unless it sets another refresh period.",
			Source: "awslabs/amazon-dynamodb-lock-client `AmazonDynamoDBLockClient.java` at 601eab15 (June 2026)",
		},
		{
			Name: "Vault's lock on Cloud Storage", Lease: "15 s", Leading: 3 * 720, Waiting: 720, Writes: 720,
			Why:    "Each 5 s the leader reads the object's metadata, writes the object, and, to watch it, reads the metadata once more; a waiting candidate reads the metadata.",
			Source: "hashicorp/vault `physical/gcs/gcs_ha.go` at 01c88db7",
		},
		{
			Name: "Vault's lock on Spanner", Lease: "15 s", Leading: 3 * 720, Waiting: 2 * 720, Writes: 720,
			Why:    "Each 5 s the leader runs a transaction of a read and a commit, and a read to watch; a waiting candidate runs the transaction, which then writes nothing.",
			Source: "hashicorp/vault `physical/spanner/spanner_ha.go` at 01c88db7",
		},
	}
}
