package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// postgres is the data source name of the PostgreSQL to test; "" if there is none.
var postgres = os.Getenv("REGENT_POSTGRES")

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if postgres == "" {
			source, stop, err := startPostgres()
			defer stop()
			if postgres = source; err != nil && os.Getenv("REGENT_REQUIRE_EMULATORS") == "1" {
				fmt.Fprintf(os.Stderr, "no PostgreSQL, and REGENT_REQUIRE_EMULATORS is 1: %v; install it, as with: apt-get install postgresql\n", err)
				return 1
			}
		}
		return m.Run()
	}())
}

// startPostgres starts the installed PostgreSQL with a new database on a socket of its own, until
// stop.
func startPostgres() (source string, stop func(), err error) {
	stop = func() {}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	path, err := exec.LookPath("pg_ctl")
	if path = cmp.Or(append(found, path)...); path == "" {
		return "", stop, err
	}
	dir, err := os.MkdirTemp("", "regent-postgres")
	if err != nil {
		return "", stop, err
	}
	stop = func() { os.RemoveAll(dir) }
	as := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // which it refuses to run as
		if as.Credential, err = credential("postgres"); err == nil {
			err = os.Chown(dir, int(as.Credential.Uid), int(as.Credential.Gid))
		}
	}
	run := func(program string, args ...string) error {
		cmd := exec.Command(filepath.Join(filepath.Dir(path), program), args...)
		cmd.Dir, cmd.SysProcAttr = dir, as
		out, err := cmd.Output() // what it starts keeps the rest open
		if err != nil {
			err = fmt.Errorf("%v: %w: %s", cmd, err, out)
		}
		return err
	}
	data, log := filepath.Join(dir, "data"), filepath.Join(dir, "log")
	if err = errors.Join(err, run("initdb", "-D", data, "-U", "regent", "--auth=trust", "--no-sync")); err != nil {
		return "", stop, err
	}
	if err = run("pg_ctl", "start", "-w", "-D", data, "-l", log, "-o", "-F -c listen_addresses= -k "+dir); err != nil {
		return "", stop, err
	}
	stop = func() {
		run("pg_ctl", "stop", "-m", "immediate", "-D", data)
		os.RemoveAll(dir)
	}
	return "host=" + dir + " user=regent dbname=postgres sslmode=disable", stop, nil
}

func credential(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, again := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err, again)
}
