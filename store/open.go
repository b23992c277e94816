// Package store opens the store that a text such as "file:/var/lib/regent/leases" names, so that
// a flag or an environment variable can choose where the leases live. The stores themselves are in
// the packages below it.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/file"
	"regent/store/internal/history"
	"regent/store/memory"
)

// Store is a store of elections and of their logs.
type Store interface {
	service.Store
	service.Journal
}

// Config has the settings common to all stores; its zero value works.
type Config struct {
	// History is how long events are kept, rule.MinHistory or more; 0 for
	// rule.DefaultHistory.
	History time.Duration
	// Log gets the warnings of a local store; nil for none.
	Log *slog.Logger
}

// Open opens the store that spec names:
//
//	memory:                                      this process's memory; lost when it ends
//	file:PATH                                    a local folder, for one process; made if absent
//	firestore:PROJECT[/DATABASE]                 Firestore; the default database is "(default)"
//	spanner:projects/P/instances/I/databases/D   Spanner; prepare the database with Migrate
//
// The caller must close the store. A malformed spec or an invalid Config is an error with the code
// InvalidArgument that says how a valid one looks; any other error is the store's own.
func Open(ctx context.Context, spec string, c Config) (Store, error) {
	t, err := parse(spec)
	if err != nil {
		return nil, err
	}
	if _, err := history.Of(c.History); err != nil { // the memory store does not check it
		return nil, err
	}
	switch t.kind {
	case inMemory:
		// An instance reads the history from ten seconds before its start, or before a cursor: so a
		// cursor of an earlier process is refused.
		return memory.New(memory.Config{History: c.History, Begins: time.Now().Add(-10 * time.Second)}), nil
	case inFile:
		return opened(file.Open(t.path, file.Config{History: c.History, Log: c.Log}))
	case inFirestore:
		return openFirestore(ctx, t, c)
	default:
		return openSpanner(ctx, t, c)
	}
}

// Validate returns the error that Open would return for a malformed spec. It opens nothing.
func Validate(spec string) error {
	_, err := parse(spec)
	return err
}

// Check verifies the folder of a local store without changing it, and returns a sentence about its
// content. If there is no such folder, the error is fs.ErrNotExist by errors.Is. It returns "" for
// a store that is not local.
func Check(spec string) (found string, err error) {
	t, err := parse(spec)
	if err != nil || t.kind != inFile {
		return "", err
	}
	r, err := file.Check(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w; regent serve creates it", err)
	case err != nil:
		return "", err
	}
	end := "closed cleanly"
	switch {
	case r.Torn > 0:
		end = fmt.Sprintf("its server was killed in the middle of a commit; the %d bytes of that are cut off when the store is opened, and no caller has heard of it unless the disk has lost the end of the log, too", r.Torn)
	case !r.Closed:
		end = "its server was killed, and left no commit in part"
	}
	last := ""
	if !r.LastCommit.IsZero() {
		last = ", the last at " + r.LastCommit.Format(time.RFC3339)
	}
	return fmt.Sprintf("elections: %d, events: %d, commits: %d%s; %.1f MiB; %s", r.Elections, r.Events, r.Commits, last, float64(r.Bytes)/(1<<20), end), nil
}

// opened returns a nil Store with an error, because a nil pointer in an interface is not nil.
func opened[S Store](s S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Migrate creates everything that the store named by spec (see Open) needs before it can be opened,
// and returns a sentence that says what it did. Idempotent. Errors: those of Open.
func Migrate(ctx context.Context, spec string) (done string, err error) {
	t, err := parse(spec)
	if err != nil {
		return "", err
	}
	switch t.kind {
	case inMemory:
		return "nothing to do: memory needs no preparation", nil
	case inFile:
		return "nothing to do: serve creates " + t.path + " when it starts", nil
	case inFirestore:
		return "nothing to do: Firestore creates collections with their first documents", nil
	default:
		if err := migrateSpanner(ctx, t); err != nil {
			return "", err
		}
		return t.database + " has the tables that this version needs", nil
	}
}

type kind string

const (
	inMemory    kind = "memory"
	inFile      kind = "file"
	inFirestore kind = "firestore"
	inSpanner   kind = "spanner"
)

type target struct {
	kind     kind
	path     string // of the local folder
	project  string // of Firestore
	database string // Firestore's, "" for the default one, or Spanner's full name
}

func parse(spec string) (target, error) {
	name, rest, found := strings.Cut(spec, ":")
	t := target{kind: kind(name)}
	if !found {
		return t, unknown(spec)
	}
	switch t.kind {
	case inMemory:
		return t, t.parseMemory(rest)
	case inFile:
		return t, t.parseFile(rest)
	case inFirestore:
		return t, t.parseFirestore(rest)
	case inSpanner:
		return t, t.parseSpanner(rest)
	}
	return t, unknown(spec)
}

func (t *target) parseMemory(rest string) error {
	if rest != "" {
		return wrong(inMemory, rest, "takes nothing after the colon: memory:")
	}
	return nil
}

func (t *target) parseFile(rest string) error {
	if strings.TrimSpace(rest) == "" || strings.ContainsRune(rest, 0) {
		return wrong(inFile, rest, "needs the path of a folder: file:PATH, such as file:/var/lib/regent/leases")
	}
	t.path = rest
	return nil
}

func (t *target) parseFirestore(rest string) error {
	project, database, named := strings.Cut(rest, "/")
	if !isID(project) || named && !isID(database) {
		return wrong(inFirestore, rest, "needs a project and, if it is not the default one, a database: firestore:PROJECT[/DATABASE], such as firestore:my-project")
	}
	t.project, t.database = project, database
	return nil
}

func (t *target) parseSpanner(rest string) error {
	p := strings.Split(rest, "/")
	if len(p) != 6 || p[0] != "projects" || p[2] != "instances" || p[4] != "databases" || !isID(p[1]) || !isID(p[3]) || !isID(p[5]) {
		return wrong(inSpanner, rest, "needs the full name of a database: spanner:projects/P/instances/I/databases/D")
	}
	t.database = rest
	return nil
}

// isID reports whether s can be the id of a project, an instance or a database. It is only strict
// enough to catch typing errors: Google's own rules differ for each.
func isID(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:()", r) {
			return false
		}
	}
	return s != ""
}

func wrong(k kind, rest, want string) error {
	return refuse("store %q: %s %s", string(k)+":"+rest, k, want)
}

func unknown(spec string) error {
	return refuse("store %q: a store is memory:, file:PATH, firestore:PROJECT[/DATABASE] or spanner:projects/P/instances/I/databases/D", spec)
}

func refuse(format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: "store", Detail: fmt.Sprintf(format, args...)}
}
