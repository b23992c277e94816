package test

import (
	"fmt"
	"path/filepath"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/emulators"
)

// place is where leases and events are kept, as variables and flags of serve.
type place struct{ env, args []string }

// with is the place with more flags, on top of those that it has.
func (p place) with(args ...string) place {
	p.args = append(p.args[:len(p.args):len(p.args)], args...)
	return p
}

// withEnv is the place with another environment on top of its own.
func (p place) withEnv(env ...string) place {
	p.env = append(p.env[:len(p.env):len(p.env)], env...)
	return p
}

// announcing is the place with a topic for its events.
func (p place) announcing(on topic) place {
	return p.withEnv("PUBSUB_EMULATOR_HOST="+on.host).with("--events", on.name)
}

func (p place) serve(t testing.TB) *server {
	t.Helper()
	return serve(t, p.env, p.args...)
}

// inFile is a local store of the test's own.
func inFile(t testing.TB) place {
	return place{args: []string{"--dev", "--store", "file:" + filepath.Join(t.TempDir(), "leases")}}
}

// inFirestore is a project of the test's own on the emulator.
func inFirestore(t testing.TB) place {
	t.Helper()
	return atFirestore(t, emulators.Firestore(t))
}

// atFirestore is inFirestore with the emulator behind another address.
func atFirestore(t testing.TB, host string) place {
	return place{env: []string{"FIRESTORE_EMULATOR_HOST=" + host}, args: []string{"--dev", "--store", "firestore:" + emulators.Name(t)}}
}

// inSpanner is a database of the test's own on the emulator.
func inSpanner(t testing.TB) place {
	t.Helper()
	env := []string{"SPANNER_EMULATOR_HOST=" + emulators.Spanner(t)}
	spec := fmt.Sprintf("spanner:projects/%s/instances/test/databases/regent", emulators.Name(t))
	migrate(t, env, spec)
	return place{env: env, args: []string{"--dev", "--store", spec}}
}

// topic is a Pub/Sub topic of the test's own on the emulator.
type topic struct{ name, host string }

func newTopic(t testing.TB) topic {
	t.Helper()
	host, name := emulators.PubSub(t), "projects/"+emulators.Name(t)+"/topics/leadership"
	conn, err := grpc.NewClient("passthrough:///"+host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	if _, err := pubsubpb.NewPublisherClient(conn).CreateTopic(t.Context(), &pubsubpb.Topic{Name: name}); err != nil {
		t.Fatal(err)
	}
	return topic{name, host}
}
