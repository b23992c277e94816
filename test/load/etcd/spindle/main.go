// Command spindle is a process that competes for one lock of spindle, a library for leader election
// on Cloud Spanner (github.com/flowerinthenight/spindle). It is a program of its own so that the
// bench beside it does not become larger. See package contender for what it prints and obeys.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	instance "cloud.google.com/go/spanner/admin/instance/apiv1"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"github.com/flowerinthenight/spindle/v2"

	"regent/test/load/etcd/internal/contender"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "spindle:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	name := flag.String("database", "", "the `database`, projects/P/instances/I/databases/D, on the emulator of SPANNER_EMULATOR_HOST")
	create := flag.Bool("create", false, "create the instance and the database, and compete for nothing")
	lock := flag.String("lock", "", "the `name` of the lock")
	lease := flag.Duration("lease", 10*time.Second, "how long the lock lasts after a heartbeat")
	flag.Parse()
	if *create {
		if err := createInstance(ctx, path.Dir(path.Dir(*name))); err != nil {
			return err
		}
		return createDatabase(ctx, *name)
	}
	client, err := spanner.NewClient(ctx, *name)
	if err != nil {
		return err
	}
	defer client.Close()
	return compete(ctx, client, *lock, *lease)
}

// table is the table of locks as spindle's README defines it.
const table = `CREATE TABLE locktable (
    name STRING(MAX) NOT NULL,
    heartbeat TIMESTAMP OPTIONS (allow_commit_timestamp=true),
    token TIMESTAMP OPTIONS (allow_commit_timestamp=true),
    writer STRING(MAX),
) PRIMARY KEY (name)`

// createInstance creates an instance on the emulator.
func createInstance(ctx context.Context, name string) error {
	admin, err := instance.NewInstanceAdminClient(ctx)
	if err != nil {
		return err
	}
	defer admin.Close()
	project := path.Dir(path.Dir(name))
	created, err := admin.CreateInstance(ctx, &instancepb.CreateInstanceRequest{
		Parent: project, InstanceId: path.Base(name),
		Instance: &instancepb.Instance{Config: project + "/instanceConfigs/emulator-config", DisplayName: "compare", NodeCount: 1},
	})
	if err == nil {
		_, err = created.Wait(ctx)
	}
	return err
}

func createDatabase(ctx context.Context, name string) error {
	admin, err := database.NewDatabaseAdminClient(ctx)
	if err != nil {
		return err
	}
	defer admin.Close()
	created, err := admin.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{
		Parent:          path.Dir(path.Dir(name)),
		CreateStatement: "CREATE DATABASE `" + path.Base(name) + "`",
		ExtraStatements: []string{table},
	})
	if err == nil {
		_, err = created.Wait(ctx)
	}
	return err
}

// compete competes until the standard input ends. Spindle has no call that releases a lock: its
// Unlock, too, cancels the context.
func compete(ctx context.Context, client *spanner.Client, name string, lease time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lock := spindle.New(client, "locktable", name, spindle.WithDuration(lease.Milliseconds()), spindle.WithLogger(log.New(taken{}, "", 0)))
	done := make(chan error, 1)
	if err := lock.Run(ctx, done); err != nil {
		return err
	}
	return contender.Obey(func() error {
		cancel()
		return <-done
	})
}

// taken reads spindle's log. The line that it has the lock comes before a callback does, and
// without the queries of HasLock.
type taken struct{}

// Write implements io.Writer. A line comes in one call.
func (taken) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("got the lock")) {
		contender.Report(contender.Leads)
	}
	return len(line), nil
}
