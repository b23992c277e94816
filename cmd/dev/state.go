package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"regent/leadership"
	"regent/leadership/client"
)

// state is a folder with the data of the Firestore emulator, and with what was seen of the
// elections since these were saved:
//
//	lock         held by the process that uses the folder
//	saved.json   saved, which names the newest export
//	export-N     made by the emulator
//	seen.jsonl   one sighting a line
//
// The emulator keeps no time of a document through an export, and a process that is killed saves
// nothing. So what was saved is treated as a backup that is restored: see restore.
type state struct {
	dir, project string
	lock         *os.File
	host         string // of the emulator

	mu    sync.Mutex // guards the fields below
	saved saved
	seen  map[leadership.Election]sighting // since the newest export
	log   *os.File                         // seen.jsonl
}

// saved is the content of saved.json.
type saved struct {
	Project string              `json:"project"`
	Export  int                 `json:"export"`  // 0: there is none
	Clean   bool                `json:"clean"`   // nothing has changed since
	Highest leadership.Revision `json:"highest"` // that was seen of any election before
}

// sighting is what an election had at least.
type sighting struct {
	Election leadership.Election `json:"election"`
	Revision leadership.Revision `json:"revision"`
	Lease    time.Duration       `json:"lease"` // the longest
}

// openState locks the folder, which is made if it is absent.
func openState(dir, project string) (*state, error) {
	dir, err := filepath.Abs(dir) // the emulator has another working directory
	if err != nil {
		return nil, err
	}
	s := &state{dir: dir, project: project, seen: map[leadership.Election]sighting{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("STATE: %w", err)
	}
	if err := s.take(); err != nil {
		return nil, fmt.Errorf("STATE=%s: %w", dir, err)
	}
	if err := s.read(); err != nil {
		s.close()
		return nil, fmt.Errorf("STATE=%s: %w", dir, err)
	}
	return s, nil
}

func (s *state) path(name string) string { return filepath.Join(s.dir, name) }

// take locks the folder. It refuses one that has other files.
func (s *state) take() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(s.path("lock")); len(entries) > 0 && errors.Is(err, fs.ErrNotExist) {
		return errors.New("this folder has other files; give an empty one, or one that does not exist")
	}
	if s.lock, err = lock(s.path("lock")); errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.New("another make dev uses this folder")
	}
	return err
}

// lock opens a file, and locks it until it is closed or this process ends. The error is
// syscall.EWOULDBLOCK if another process has locked it.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// read reads what the last run left.
func (s *state) read() error {
	text, err := os.ReadFile(s.path("saved.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if exports, _ := filepath.Glob(s.path("export-*")); len(exports) > 0 {
			return errors.New("it has an export, and no saved.json that says what it is; give another folder, or remove this one to begin anew")
		}
		s.saved = saved{Project: s.project, Clean: true}
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &s.saved); err != nil {
			return fmt.Errorf("saved.json: %w", err)
		}
	}
	if s.saved.Project != s.project {
		return fmt.Errorf("it has the data of PROJECT=%s; give that, or another folder", s.saved.Project)
	}
	if text, err = os.ReadFile(s.path("seen.jsonl")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range bytes.Lines(text) {
		var one sighting
		if json.Unmarshal(line, &one) == nil { // the last line of a killed process may be cut
			s.add(one)
		}
	}
	s.log, err = os.OpenFile(s.path("seen.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil && len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		_, err = s.log.WriteString("\n")
	}
	return err
}

// add notes a sighting in memory. It reports whether that is news. Call with mu held.
func (s *state) add(one sighting) bool {
	s.saved.Highest = max(s.saved.Highest, one.Revision)
	known, is := s.seen[one.Election]
	one.Revision, one.Lease = max(one.Revision, known.Revision), max(one.Lease, known.Lease)
	s.seen[one.Election] = one
	return !is || one != known
}

// see notes a sighting, in the file, too.
func (s *state) see(one sighting) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.add(one) {
		return nil
	}
	return s.write(one)
}

// write appends a sighting to the file. Call with mu held.
func (s *state) write(one sighting) error {
	line, err := json.Marshal(one)
	if err == nil {
		_, err = s.log.Write(append(line, '\n'))
	}
	return err
}

// follow notes every change that an instance tells of, until ctx ends.
func (s *state) follow(ctx context.Context, url string) {
	for ctx.Err() == nil {
		if err := s.watch(ctx, url); ctx.Err() == nil && err != nil {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
}

func (s *state) watch(ctx context.Context, url string) error {
	c, err := client.New(client.Config{Server: url})
	if err != nil {
		return err
	}
	for news, err := range c.Watch(ctx, client.WatchRequest{}) {
		switch {
		case err != nil:
			return err
		case news.Lease != nil:
			err = s.see(sighting{news.Lease.Election, news.Lease.Revision, news.Lease.LeaseDuration})
		case news.Event != nil:
			err = s.see(sighting{news.Event.Election, news.Event.Revision, 0})
			if news.Event.Type == leadership.EventAcquired {
				err = errors.Join(err, s.seeLease(ctx, c, news.Event.Election))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// seeLease notes how long a new lease is, which its event does not say.
func (s *state) seeLease(ctx context.Context, c *client.Client, e leadership.Election) error {
	reading, err := c.Read(ctx, leadership.ReadRequest{Election: e})
	if err != nil {
		return err
	}
	return s.see(sighting{e, reading.Lease.Revision, reading.Lease.LeaseDuration})
}

// save has the emulator export its data, and then lets go of what was saved before. clean says that
// no instance runs any more.
func (s *state) save(ctx context.Context, clean bool) error {
	s.mu.Lock()
	next, before := s.saved.Export+1, s.seen
	s.seen = map[leadership.Election]sighting{} // what is seen from now on need not be in the export
	s.mu.Unlock()
	err := s.export(ctx, next)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.saved.Export, s.saved.Clean = next, clean
		err = s.writeSaved()
	}
	if err != nil {
		for _, one := range before {
			s.add(one)
		}
		return err
	}
	return errors.Join(s.forget(), s.removeExports(next))
}

// export has the emulator write all documents into a folder.
func (s *state) export(ctx context.Context, number int) error {
	dir := s.exportPath(number)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return err
	}
	return s.ask(ctx, "export", map[string]string{"database": s.database(), "export_directory": dir, "export_name": exportName})
}

const exportName = "firestore"

func (s *state) exportPath(number int) string { return s.path(fmt.Sprintf("export-%d", number)) }

func (s *state) database() string { return "projects/" + s.project + "/databases/(default)" }

// ask makes a call that only an emulator has.
func (s *state) ask(ctx context.Context, verb string, request any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.host+"/emulator/v1/projects/"+s.project+":"+verb, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := local.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: the emulator answers %s: %s", verb, resp.Status, bytes.TrimSpace(answer.Bytes()))
	}
	return nil
}

// writeSaved replaces saved.json. Call with mu held.
func (s *state) writeSaved() error {
	text, err := json.Marshal(s.saved)
	if err != nil {
		return err
	}
	return s.replace("saved.json", text)
}

// replace replaces a file in one step.
func (s *state) replace(name string, content []byte) error {
	if err := os.WriteFile(s.path(name+".new"), content, 0o600); err != nil {
		return err
	}
	return os.Rename(s.path(name+".new"), s.path(name))
}

// forget leaves in seen.jsonl only what was seen since the newest export began. Call with mu held.
func (s *state) forget() error {
	s.log.Close()
	var err error
	if err = s.replace("seen.jsonl", nil); err != nil {
		return err
	}
	if s.log, err = os.OpenFile(s.path("seen.jsonl"), os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	for _, one := range s.seen {
		err = errors.Join(err, s.write(one))
	}
	return err
}

// removeExports removes all but the one with the number.
func (s *state) removeExports(but int) error {
	all, err := filepath.Glob(s.path("export-*"))
	for _, dir := range all {
		if dir != s.exportPath(but) {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

func (s *state) close() {
	if s.log != nil {
		s.log.Close()
	}
	s.lock.Close()
}
