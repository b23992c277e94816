package clients_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/test/clients"
	proc "regent/test/process"
)

// process is a driver at work.
type process struct {
	*scene
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu     sync.Mutex // guards all below
	events []clients.Event
	log    strings.Builder
	over   bool // it has ended, and said all
}

// start starts the driver, which has ended when the case has.
func (s *scene) start(o clients.Options) *process {
	s.Helper()
	command := s.kind.command(s, &o)
	p := &process{scene: s, cmd: command}
	p.cmd.Env = proc.Environ(slices.Concat([]string{"PYTHONDONTWRITEBYTECODE=1"}, s.env(o), p.cmd.Env)...)
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	s.need(err)
	stdout, err := p.cmd.StdoutPipe()
	s.need(err)
	stderr, err := p.cmd.StderrPipe()
	s.need(err)
	s.need(proc.Begin(p.cmd))
	var reading sync.WaitGroup
	reading.Go(func() { p.listen(stdout) })
	reading.Go(func() { p.keepLog(stderr) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		reading.Wait()
		p.cmd.Wait()
		p.change(func() { p.events = append(p.events, s.kind.ending(p)...); p.over = true })
	}()
	s.Cleanup(func() {
		p.stdin.Close()
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	s.driver = p
	s.drivers = append(s.drivers, p)
	return p
}

func optionsText(o clients.Options) string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (p *process) change(how func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	how()
}

func (p *process) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e clients.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = clients.Event{Event: "no event", Detail: fmt.Sprintf("%q: %v", lines.Text(), err)}
		}
		p.change(func() { p.events = append(p.events, e) })
	}
}

func (p *process) keepLog(out io.Reader) {
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		p.change(func() { p.log.WriteString(line) })
		if err != nil {
			return
		}
	}
}

// said returns the events so far, which never change.
func (p *process) said() []clients.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.events)
}

func (p *process) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// story is what it said, with ticks in a few words, and its log.
func (p *process) story() string {
	var text strings.Builder
	var last clients.Event
	for _, e := range p.said() {
		if e.Event != clients.Tick || last.Event != clients.Tick || *e.Valid != *last.Valid {
			line, _ := json.Marshal(e)
			fmt.Fprintf(&text, "%12.3f %s\n", time.Duration(e.At).Seconds(), line)
		}
		last = e
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(&text, "the last at %.3f; %v\n%s", time.Duration(last.At).Seconds(), p.cmd.ProcessState, p.log.String())
	return text.String()
}

// awaits waits for the n-th event of that name, and returns it.
func (p *process) awaits(name string, n int) (e clients.Event) {
	p.Helper()
	found := func() bool {
		for _, one := range p.said() {
			if one.Event == name {
				if n--; n == 0 {
					e = one
					return true
				}
			}
		}
		return false
	}
	want := n
	p.until(fmt.Sprintf("the driver says %q %d times", name, n), func() bool {
		n = want
		over := p.isOver()
		ok := found()
		if !ok && over {
			p.Fatalf("the driver has ended, and has not said %q %d times\n%s", name, want, p.scene.story())
		}
		return ok
	})
	return e
}

// leadsAtAll waits until it leads, and returns its token. On a machine that is busy a short lease
// may have ended before the client knew of it, or before the command of a wrapper began: then the
// token is another one, or 0.
func (p *process) leadsAtAll() (token leadership.Token) {
	p.Helper()
	p.until("the driver leads, or has ended", func() bool {
		over := p.isOver()
		for _, e := range p.said() {
			if e.Event == clients.Leading {
				token = leadership.Token(e.Token)
				return true
			}
		}
		return over
	})
	return token
}

// leads waits until it leads, and checks its token.
func (p *process) leads(token leadership.Token) {
	p.Helper()
	n := 0
	for _, e := range p.said() {
		if e.Event == clients.Leading && leadership.Token(e.Token) < token {
			n++
		}
	}
	if e := p.awaits(clients.Leading, n+1); leadership.Token(e.Token) != token {
		p.Errorf("it leads with token %d, not %d\n%s", e.Token, token, p.scene.story())
	}
	p.awaits(clients.Tick, 1)
}

// ticks waits until it has asked its lease anew.
func (p *process) ticks() (e clients.Event) {
	p.Helper()
	n := 0
	for _, e := range p.said() {
		if e.Event == clients.Tick {
			n++
		}
	}
	return p.awaits(clients.Tick, n+2)
}

// goesOn checks that it leads, and has never ceased to.
func (p *process) goesOn() {
	p.Helper()
	if e := p.ticks(); !*e.Valid {
		p.Errorf("it no longer leads\n%s", p.scene.story())
	}
}

// tells gives a command.
func (p *process) tells(command string) {
	p.Helper()
	if !p.kind.commands(p, command) {
		io.WriteString(p.stdin, command+"\n") //nolint:errcheck // it may have ended by itself
	}
}

// ends waits until it has ended as it should.
func (p *process) ends() {
	p.Helper()
	p.until("the driver ends", p.isOver)
	last := p.said()
	if len(last) == 0 || last[len(last)-1].Event != clients.End || p.kind.wrapper == nil && !p.cmd.ProcessState.Success() {
		p.Errorf("the driver has ended without saying so\n%s", p.scene.story())
	}
}

// stops has it release its lease, and end.
func (p *process) stops() {
	p.Helper()
	p.tells("stop")
	p.awaits(clients.Released, 1)
	p.ends()
}

// loses waits until its lease is over, for one of the reasons. A wrapper does not always say which.
func (p *process) loses(codes ...leadership.Code) {
	p.Helper()
	e := p.awaits(clients.Lost, 1)
	unnamed := p.kind.wrapper != nil && e.Code == ""
	if !unnamed && !slices.Contains(codes, leadership.Code(e.Code)) {
		p.Errorf("the lease is lost with %s, not %v\n%s", e.Code, codes, p.scene.story())
	}
}

// fails waits until its call has failed. The log of a wrapper does not always name the code.
func (p *process) fails(call string, codes ...leadership.Code) {
	p.Helper()
	e := p.awaits(clients.Failed, 1)
	unnamed := p.kind.wrapper != nil && e.Code == clients.Other
	if e.Call != call || !unnamed && !slices.Contains(codes, leadership.Code(e.Code)) {
		p.Errorf("%s has failed with %s, not %s with %v\n%s", e.Call, e.Code, call, codes, p.scene.story())
	}
	p.ends()
}

// leaves has it end, whether its lease lasts until then or not: a short one may not, on a machine
// that is busy.
func (p *process) leaves() {
	p.Helper()
	switch {
	case p.isOver():
	case p.kind.wrapper != nil: // it may begin again
		p.tells("cancel")
	default:
		p.tells("stop")
	}
	p.ends()
}

// ticksFor waits until it has asked its lease after that time has passed.
func (p *process) ticksFor(d time.Duration) {
	p.Helper()
	end := boottime.Now() + d
	p.until(fmt.Sprintf("%v pass", d), func() bool {
		said := p.said()
		i := slices.IndexFunc(said, func(e clients.Event) bool { return time.Duration(e.At) > end })
		return i >= 0 || p.isOver()
	})
}

// pauses stops the driver, and nothing that it has started, until SIGCONT.
func (p *process) pauses() {
	p.Helper()
	p.signal(syscall.SIGSTOP)
	p.until("the driver is stopped", func() bool { return proc.Stopped(p.cmd.Process.Pid) })
}

// signal sends one to the driver, and to nothing that it has started.
func (p *process) signal(s syscall.Signal) {
	p.cmd.Process.Signal(s) //nolint:errcheck // it may have ended by itself
}
