package faults

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/faults/record"
	proc "regent/test/process"
)

// server is a `regent serve`, over all its lives.
type server struct {
	session *session
	name    string
	address string
	env     []string
	args    []string
	client  *client.Client // of this process, past all hops; its calls are written down
	proxy   *record.Proxy

	mu      sync.Mutex // guards process
	process *process
}

// life is how a server is started.
type life struct {
	point  string        // the failpoint it dies at, "name:n"; "" for none
	offset time.Duration // of its clock; 0 for none
}

// newServer returns a server that is not started yet.
func (s *session) newServer(i int, env, args []string) (*server, error) {
	address, err := proc.Address()
	if err != nil {
		return nil, err
	}
	v := &server{session: s, name: serverName(i), address: address, env: env}
	v.args = append([]string{"serve", "--dev", "--listen", address}, args...)
	if v.proxy, err = record.NewProxy("director-"+v.name, address, s.recorder); err != nil {
		return nil, err
	}
	v.client, err = client.New(client.Config{Server: v.proxy.URL(), HTTP: &http.Client{Timeout: callTimeout}})
	return v, err
}

const (
	startTimeout = 30 * time.Second
	callTimeout  = 10 * time.Second
)

// start starts it and returns once it serves.
func (v *server) start(ctx context.Context, l life) error {
	program, env := regent, v.env
	if l.point != "" {
		program, env = mortal, append(env[:len(env):len(env)], "REGENT_FAILPOINT="+l.point)
	}
	cmd := v.session.setup.command(program, env, v.args...)
	if l.offset != 0 {
		cmd = shifted(cmd, int64(l.offset/time.Second))
	}
	p, err := v.session.launch(v.name, cmd)
	if err != nil {
		return err
	}
	p.expected.Store(l.point != "")
	v.mu.Lock()
	v.process = p
	v.mu.Unlock()
	return v.ready(ctx, p)
}

// ready waits until it serves, or has ended, as one with a failpoint may before.
func (v *server) ready(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+v.address+"/health/live", nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.gone:
			if p.expected.Load() {
				return nil
			}
			return fmt.Errorf("%s does not start; see its log", v.name)
		case <-ctx.Done():
			return fmt.Errorf("%s does not start in time: %w", v.name, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// configure configures an election there.
func (v *server) configure(ctx context.Context, e leadership.Election, lockDelay time.Duration) error {
	r := leadership.Configure{Election: e}
	r.Config = leadership.Config{LeaseDuration: v.session.plan.Lease, LockDelay: lockDelay, Ballot: v.session.plan.Ballots[e]}
	if e == record.Pool {
		r.Config.Seats = v.session.plan.Seats
	}
	_, err := v.client.Do(ctx, r)
	return err
}

func (v *server) now() *process {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.process
}
