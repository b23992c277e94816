package spanner

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/leadership/rule"
)

// Config says which database to use. Only Database is required.
type Config struct {
	// Database is the full name: projects/P/instances/I/databases/D.
	Database string
	// EmulatorHost is the host:port of an emulator; "" for SPANNER_EMULATOR_HOST. If both are
	// empty, the store is on Cloud Spanner.
	EmulatorHost string
	// CallTimeout limits each call of the Store whose context ends later or never; 0 for
	// DefaultCallTimeout.
	CallTimeout time.Duration
	// History is how long events are kept: rule.MinHistory or more, 0 for rule.DefaultHistory. It
	// applies to events written from now on. If it was shorter before, or is shorter in another
	// process, Since may lack events that were written with the shorter one.
	History time.Duration
	// Codec reads and writes policy and standing; the zero Codec is this program's.
	Codec rule.Codec
	// DialOptions are added to those of the connections, such as a stats handler.
	DialOptions []grpc.DialOption
}

// DefaultCallTimeout is far longer than a call takes, and shorter than the default lease: without a
// limit the client would retry for ever.
const DefaultCallTimeout = 10 * time.Second

// EmulatorVariable is the environment variable that names an emulator, also used by Google's tools.
const EmulatorVariable = "SPANNER_EMULATOR_HOST"

func (c Config) emulatorHost() string { return cmp.Or(c.EmulatorHost, os.Getenv(EmulatorVariable)) }

type name struct {
	project, instance, database string
}

func (n name) projectPath() string  { return "projects/" + n.project }
func (n name) instancePath() string { return n.projectPath() + "/instances/" + n.instance }

func (c Config) name() (name, error) {
	p := strings.Split(c.Database, "/")
	if len(p) != 6 || p[0] != "projects" || p[2] != "instances" || p[4] != "databases" || p[1] == "" || p[3] == "" || p[5] == "" {
		return name{}, fmt.Errorf("spanner: a database is named projects/P/instances/I/databases/D, not %q", c.Database)
	}
	return name{project: p[1], instance: p[3], database: p[5]}, nil
}

// options are those of every client, for data and for administration.
func (c Config) options() []option.ClientOption {
	dial := []grpc.DialOption{grpc.WithChainUnaryInterceptor(watchCommit)}
	var opts []option.ClientOption
	if host := c.emulatorHost(); host != "" {
		opts = append(opts, option.WithEndpoint("passthrough:///"+host), option.WithoutAuthentication())
		dial = append(dial,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithChainUnaryInterceptor(abortLostUnary),
			grpc.WithChainStreamInterceptor(abortLostStream))
	}
	for _, d := range append(dial, c.DialOptions...) {
		opts = append(opts, option.WithGRPCDialOption(d))
	}
	return opts
}

// patience returns a quarter of the call timeout, 2.5 s by default: a transaction that takes longer
// waits for a lock.
func (c Config) patience() time.Duration { return c.callTimeout() / 4 }

func (c Config) callTimeout() time.Duration { return cmp.Or(c.CallTimeout, DefaultCallTimeout) }
