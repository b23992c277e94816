package fence

import "sync"

// Guard keeps the marks of resources in memory, for what lives and dies with the process: a device, a connection, a file that only this process
// writes. A process that is started anew has forgotten them. The zero Guard is ready; all methods may be called at the same time.
type Guard struct {
	mu    sync.Mutex
	marks map[string]Mark // by resource, an entry for each that was written to; guarded by mu
}

// Do runs write if the leader that w names may write to the resource, and returns its error; or it returns why not, as Mark.Admit does, and
// write has not run. While write runs nobody else writes to any resource of the Guard, so that no later leader can come between: one
// Guard is for one resource, or for several whose writes are short. The mark is raised even if write fails.
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

// Mark is what the resource remembers.
func (g *Guard) Mark(resource string) Mark {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.marks[resource]
}
