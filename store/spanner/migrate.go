package spanner

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	instance "cloud.google.com/go/spanner/admin/instance/apiv1"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Migrate creates the tables if there are none, and notes SchemaVersion and the lowest version that
// may use them. On an emulator it creates the instance and the database too; on Cloud Spanner these
// cost money and are for an operator to create on purpose. Idempotent. A database of a later
// version is left as it is, and refused unless this program may use it.
func Migrate(ctx context.Context, cfg Config) error {
	n, err := cfg.name()
	if err != nil {
		return err
	}
	admin, err := database.NewDatabaseAdminClient(ctx, cfg.options()...)
	if err != nil {
		return fmt.Errorf("spanner: migrate %s: %w", cfg.Database, err)
	}
	defer admin.Close()
	if cfg.emulatorHost() != "" {
		if err := createDatabase(ctx, cfg, n, admin); err != nil {
			return fmt.Errorf("spanner: create %s on the emulator: %w", cfg.Database, err)
		}
	}
	return migrate(ctx, cfg, admin)
}

func migrate(ctx context.Context, cfg Config, admin *database.DatabaseAdminClient) error {
	client, err := cfg.dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	v, err := readVersions(ctx, client)
	if err == nil && v.Version == 0 {
		err = createTables(ctx, cfg.Database, admin, client)
	}
	if err != nil {
		return fmt.Errorf("spanner: migrate %s: %w", cfg.Database, err)
	}
	_, err = checkSchema(ctx, client, cfg.Database)
	return err
}

func createTables(ctx context.Context, path string, admin *database.DatabaseAdminClient, client *spanner.Client) error {
	err := changeSchema(ctx, path, admin)
	for attempt := 0; schemaBusy(err) && attempt < 50; attempt++ {
		select {
		case <-time.After(100 * time.Millisecond):
			err = changeSchema(ctx, path, admin)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	versions := spanner.Insert("LeadershipSchema", []string{"version", "lowest"}, []any{SchemaVersion, SchemaVersion})
	_, err = client.Apply(ctx, []*spanner.Mutation{versions}, spanner.TransactionTag(tag("migrate")))
	return existing(err) // another Migrate may have been faster, perhaps that of a later version
}

func changeSchema(ctx context.Context, path string, admin *database.DatabaseAdminClient) error {
	op, err := admin.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: path, Statements: statements(schemaSQL)})
	if err != nil {
		return err
	}
	return op.Wait(ctx)
}

// schemaBusy reports whether another schema change is in progress. Cloud Spanner lets the second
// one wait; an emulator refuses it.
func schemaBusy(err error) bool {
	return status.Code(err) == codes.FailedPrecondition && strings.Contains(status.Convert(err).Message(), "concurrent schema change")
}

func createDatabase(ctx context.Context, cfg Config, n name, admin *database.DatabaseAdminClient) error {
	if err := createInstance(ctx, cfg, n); err != nil {
		return err
	}
	op, err := admin.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{
		Parent:          n.instancePath(),
		CreateStatement: "CREATE DATABASE `" + n.database + "`",
	})
	if err != nil {
		return existing(err)
	}
	_, err = op.Wait(ctx)
	return existing(err)
}

func createInstance(ctx context.Context, cfg Config, n name) error {
	admin, err := instance.NewInstanceAdminClient(ctx, cfg.options()...)
	if err != nil {
		return err
	}
	defer admin.Close()
	op, err := admin.CreateInstance(ctx, &instancepb.CreateInstanceRequest{
		Parent:     n.projectPath(),
		InstanceId: n.instance,
		Instance: &instancepb.Instance{
			Config:      n.projectPath() + "/instanceConfigs/emulator-config",
			DisplayName: n.instance,
			NodeCount:   1,
		},
	})
	if err != nil {
		return existing(err)
	}
	_, err = op.Wait(ctx)
	return existing(err)
}

// existing returns err, or nil if err says that the thing to be created exists already.
func existing(err error) error {
	if status.Code(err) == codes.AlreadyExists {
		return nil
	}
	return err
}
