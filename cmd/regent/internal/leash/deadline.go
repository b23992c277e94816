package leash

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"regent/leadership/boottime"
)

// deadlineFile is the path of the file that tells the command its deadline. It is alone in a
// directory that only this user can read.
type deadlineFile string

func newDeadlineFile(deadline time.Duration) (deadlineFile, error) {
	dir, err := os.MkdirTemp("", "regent-run-*")
	if err != nil {
		return "", err
	}
	// the command may change its directory, and the guard has another
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	f := deadlineFile(filepath.Join(dir, "deadline"))
	if err := f.write(deadline); err != nil {
		removeDeadline(string(f))
		return "", err
	}
	return f, nil
}

// write replaces the file atomically.
func (f deadlineFile) write(deadline time.Duration) error {
	text := fmt.Sprintf("%d\n%s\n", deadline.Milliseconds(), time.Now().Add(deadline-boottime.Now()).UTC().Format(time.RFC3339Nano))
	if err := os.WriteFile(string(f)+newSuffix, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(string(f)+newSuffix, string(f))
}

const newSuffix = ".new"

func removeDeadline(path string) {
	os.Remove(path + newSuffix)
	os.Remove(path)
	os.Remove(filepath.Dir(path))
}
