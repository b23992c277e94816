package clients_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"

	"regent/leadership/boottime"
	"regent/leadership/wire"
	"regent/test/clients"
	"regent/test/typescript"
)

// kind is a client.
type kind struct {
	name  string
	tools []string // programs that must be installed
	// returns the command that drives it; it may add to the options
	command func(*scene, *clients.Options) *exec.Cmd
	wrapper *wrapper           // nil if it has a driver of its own
	lacks   map[ability]string // what it cannot do, and why not
}

// ability is something that some cases need.
type ability string

const (
	try       ability = "try"       // acquires without waiting in line
	again     ability = "again"     // leads again in the same process
	stopped   ability = "stopped"   // obeys its deadline while it is stopped itself
	watches   ability = "watches"   // hears of events
	callsToo  ability = "calls"     // makes other calls
	remaining ability = "remaining" // tells how long it believes
	abandons  ability = "abandons"  // gives back a lease whose grant it did not wait for
	handsOver ability = "handsOver" // hands over to a successor
	cLibrary  ability = "cLibrary"  // reads clocks by the C library, which a case can falsify
)

// wrapper is a program that runs a command while it leads.
type wrapper struct {
	lost map[int]string // codes of Lost, by exit code; "" if it can be any
	held int            // exit code when another leads; 0 for none
}

const (
	ofACommand = "it runs a command, and offers no calls"
	noTicket   = "its command is not told until when it may believe"
	ofGo       = "programs in Go compare monotonic times, and read clocks without the C library"
)

// kinds are the clients, in the order of the table.
var kinds = []kind{
	{name: "Go", command: goDriver, lacks: map[ability]string{cLibrary: ofGo}},
	{name: "Python", tools: []string{"python3"}, command: python("threads")},
	{name: "Python asyncio", tools: []string{"python3"}, command: python("asyncio")},
	{name: "TypeScript", tools: []string{"node"}, command: typeScript},
	{name: "`regent run`", command: regentRun, wrapper: &wrapper{lost: map[int]string{120: "LEASE_LOST", 121: clients.Deadline}, held: 3}, lacks: map[ability]string{
		watches: ofACommand, callsToo: ofACommand, handsOver: ofACommand, cLibrary: ofGo,
	}},
	{name: "agent.sh", tools: []string{"bash", "curl", "setsid"}, command: agent, wrapper: &wrapper{lost: map[int]string{4: ""}}, lacks: map[ability]string{
		watches: ofACommand, callsToo: ofACommand, handsOver: ofACommand, remaining: noTicket,
		abandons: "a lease whose grant it did not wait for ends by itself", try: "it always waits in line", again: "it leads once", stopped: "nothing stops its command while the script itself is stopped: then only the token protects",
	}},
}

func goDriver(s *scene, _ *clients.Options) *exec.Cmd {
	return exec.Command(s.program(driver))
}

// python returns the command of the driver of the Python package, in that style.
func python(style string) func(*scene, *clients.Options) *exec.Cmd {
	return func(s *scene, o *clients.Options) *exec.Cmd {
		o.Style = style
		return exec.Command("python3", s.file("drivers/python/driver.py"))
	}
}

func typeScript(s *scene, _ *clients.Options) *exec.Cmd {
	return exec.Command("node", filepath.Join(typescript.Build(s.T), "driver", "driver.js"))
}

func regentRun(s *scene, o *clients.Options) *exec.Cmd {
	args := []string{"run", string(s.election), "--timeout", "5s", "--report-file", filepath.Join(s.TempDir(), "report")}
	if o.Try {
		args = append(args, "--no-wait")
	}
	if o.Again {
		args = append(args, "--restart")
	}
	return exec.Command(s.program(regent), append(args, "--", s.program(driver), "worker")...)
}

func agent(s *scene, _ *clients.Options) *exec.Cmd {
	cmd := exec.Command("bash", s.file("../examples/agent.sh"), string(s.election), "--", s.program(driver), "worker")
	cmd.Env = []string{"REGENT_REPORT_FILE=" + filepath.Join(s.TempDir(), "report")}
	return cmd
}

func (s *scene) program(build func() (string, error)) string {
	s.Helper()
	path, err := build()
	if err != nil {
		s.Fatalf("build: %v", err)
	}
	return path
}

// file returns the path of a source file. It is read here, so that no cached result outlives it.
func (s *scene) file(name string) string {
	s.Helper()
	_, err := os.ReadFile(name)
	s.need(err)
	return name
}

// commands gives a command to a wrapper, and reports whether it was for that.
func (k kind) commands(p *process, command string) bool {
	waits := func() bool {
		for _, e := range p.said() {
			if e.Event == clients.Leading {
				return false
			}
		}
		return true
	}
	if k.wrapper == nil || command != "cancel" && (command != "stop" || !waits()) {
		return false
	}
	p.signal(syscall.SIGTERM)
	return true
}

// ending returns the events that a wrapper does not write, by how it has ended. Call with p.mu
// held.
func (k kind) ending(p *process) []clients.Event {
	if k.wrapper == nil {
		return nil
	}
	e := clients.Event{Event: clients.Failed, At: int64(boottime.Now()), Call: "lead", Code: clients.Other}
	for _, one := range p.events {
		e.Token = cmp.Or(one.Token, e.Token)
	}
	said := p.log.String()
	status := p.cmd.ProcessState.ExitCode()
	code, isLost := k.wrapper.lost[status]
	switch {
	case isLost:
		e.Event, e.Code = clients.Lost, code
	case e.Token > 0 && (status == 0 || status == 128+int(syscall.SIGTERM)):
		e.Event, e.Code = clients.Released, ""
	case status == 128+int(syscall.SIGTERM):
		e.Code = clients.Cancelled
	case k.wrapper.held > 0 && status == k.wrapper.held:
		e.Code = "LEASE_HELD"
	default:
		e.Code = codeIn(said)
	}
	return []clients.Event{e, {Event: clients.End}}
}

var word = regexp.MustCompile(`\b[A-Z]+(_[A-Z]+)+\b`)

// codeIn returns the code that a log names, or OTHER.
func codeIn(said string) string {
	for _, name := range word.FindAllString(said, -1) {
		for _, c := range wire.Meanings() {
			if string(c.Code) == name {
				return name
			}
		}
	}
	return clients.Other
}
