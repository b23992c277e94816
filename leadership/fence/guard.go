package fence

import "sync"

// Guard keeps the marks of resources in memory, for resources that end with the process: a device,
// a connection, a file that only this process writes. A restarted process has no marks. The zero
// Guard is ready to use; its methods may be called concurrently.
type Guard struct {
	mu    sync.Mutex
	marks map[string]Mark // by resource, an entry for each that was written to; guarded by mu
}

// Do calls write if the leader named by w may write to the resource, and returns write's error;
// otherwise it returns Mark.Admit's error without calling write. Do holds the whole Guard while
// write runs, so that no later leader can get in between: use one Guard for one resource, or for
// several with short writes. The mark is raised even if write fails.
func (g *Guard) Do(resource string, w Mark, write func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, err := g.marks[resource].Admit(w)
	if err != nil {
		return err
	}
	if g.marks == nil {
		g.marks = map[string]Mark{}
	}
	g.marks[resource] = m
	return write()
}

// Mark returns the resource's mark.
func (g *Guard) Mark(resource string) Mark {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.marks[resource]
}
