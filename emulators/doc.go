// Package emulators provides the public Google Cloud emulators to tests and make targets:
// Firestore, Spanner and Pub/Sub.
//
// Each emulator is found or started separately, from the first of these sources that has it:
//
//	env      its *_EMULATOR_HOST variable is set: it already runs
//	gcloud   the Google Cloud SDK on PATH has its component: started as a child
//	docker   a Docker engine answers: started as a container
//
// REGENT_EMULATORS=env, gcloud or docker forces one source for all of them.
//
// A test asks for a host and gets one, is skipped, or fails:
//
//	host := emulators.Firestore(t)
//	project := emulators.Name(t) // isolation: emulators are shared
//
// Such an emulator belongs to the test process: it is started at the first call, and is gone when
// the process is, however that ends. To test several packages, save time by starting the emulators
// around them, with Start or from a shell:
//
//	go run ./cmd/emulators -- go test ./...
//
// # Clean-up
//
// An emulator of the SDK is a family of processes: a Python wrapper, which makes itself the leader
// of a process group, and below it a shell and a JVM, or two C++ programs. None of them notices
// that its starter died, and Linux's PR_SET_PDEATHSIG reaches only the first. So a guard stands
// between: a shell in its own session that holds the reading end of a pipe:
//
//	starter ──pipe──> guard ──group──> gcloud ─> emulator
//
// Only the starter holds the writing end. Stop closes it to end the family, and the kernel closes
// it when the starter dies, even of kill -9: one path for both. The guard then ends the whole
// group, SIGTERM first, SIGKILL after it.
//
// This works on Linux and macOS; the package does not build elsewhere.
//
// Containers are removed by Stop and, if the starter dies, by the reaper that testcontainers runs
// beside them; if that is switched off (TESTCONTAINERS_RYUK_DISABLED) they stay until removed by
// hand.
package emulators
