package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"regent/emulators"
)

// settings say what to run. Their flags are set by variables of make.
type settings struct {
	store   emulators.Kind // Firestore or Spanner
	listen  [2]string      // of the instances, on loopback
	project string
	dir     string        // folder of the logs
	regent  string        // the binary
	pause   time.Duration // until an instance that has ended is started again
	args    []string      // more flags of regent serve
}

func parse(args []string) (settings, error) {
	s := settings{}
	flags := flag.NewFlagSet("dev", flag.ContinueOnError)
	store := flags.String("store", "firestore", "the `store`: firestore or spanner (STORE)")
	listen := flags.String("listen", "127.0.0.1:8080", "`HOST:PORT` of the first instance, or of both, with a comma between (LISTEN)")
	flags.StringVar(&s.project, "project", "regent-dev", "Google Cloud `project`, which need not exist (PROJECT)")
	flags.StringVar(&s.dir, "dir", ".build/dev", "`folder` for logs")
	flags.StringVar(&s.regent, "regent", ".build/regent", "the `binary` of regent")
	flags.DurationVar(&s.pause, "restart", 30*time.Second, "how long an instance that has ended stays away")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	s.store, s.args = emulators.Kind(*store), flags.Args()
	err := errors.Join(s.setListen(*listen), s.validate())
	return s, err
}

// setListen takes both addresses, or one: then the second instance gets the next port.
func (s *settings) setListen(text string) error {
	first, second, both := strings.Cut(text, ",")
	wrong := fmt.Errorf("LISTEN=%s: give HOST:PORT on this machine, as in 127.0.0.1:9080, or two of them with a comma between", text)
	for i, address := range []string{first, cmp.Or(second, first)} {
		host, digits, err := net.SplitHostPort(strings.TrimSpace(address))
		port, bad := strconv.ParseUint(digits, 10, 16)
		ip := net.ParseIP(host)
		if err != nil || bad != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return wrong
		}
		if i == 1 && !both && port > 0 {
			if port++; port > 65535 {
				return wrong
			}
		}
		s.listen[i] = net.JoinHostPort(host, strconv.FormatUint(port, 10))
	}
	if s.listen[0] == s.listen[1] && !strings.HasSuffix(s.listen[0], ":0") {
		return wrong
	}
	return nil
}

// ours are the flags of serve that are set here, and the variables of make that choose them.
var ours = map[string]string{"store": "STORE=firestore or STORE=spanner", "listen": "LISTEN=HOST:PORT", "events": "PROJECT=P", "members": "PROJECT=P", "dev": ""}

func (s settings) validate() error {
	if s.store != emulators.KindFirestore && s.store != emulators.KindSpanner {
		return fmt.Errorf("STORE=%s: choose firestore or spanner (make run serves a local folder, without emulators)", s.store)
	}
	for _, arg := range s.args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if variable, is := ours[name]; is && strings.HasPrefix(arg, "-") {
			return fmt.Errorf("ARGS: --%s is set by make dev itself; leave it out%s", name, map[bool]string{true: ", or choose by " + variable}[variable != ""])
		}
	}
	if !projectID.MatchString(s.project) {
		return fmt.Errorf("PROJECT=%s: a project has from 6 to 30 of a-z, 0-9 and -, and begins with a letter, such as regent-dev", s.project)
	}
	return nil
}

// projectID matches the project ids that Google Cloud allows.
var projectID = regexp.MustCompile(`^[a-z][a-z0-9-]{4,28}[a-z0-9]$`)

// spec names the store, as for serve.
func (s settings) spec() string {
	if s.store == emulators.KindSpanner {
		return "spanner:projects/" + s.project + "/instances/regent/databases/regent"
	}
	return "firestore:" + s.project
}

func (s settings) topics() (events, members string) {
	return "projects/" + s.project + "/topics/regent", "projects/" + s.project + "/topics/regent-members"
}

func (s settings) serveCommand(listen string) []string {
	events, members := s.topics()
	return append([]string{s.regent, "serve", "--dev", "--listen", listen, "--store", s.spec(), "--events", events, "--members", members}, s.args...)
}

// file returns the path of a file in the folder of the logs.
func (s settings) file(name string) string { return filepath.Join(s.dir, name) }

// check returns errors that would otherwise appear only after the emulators have started.
func (s settings) check() error {
	if _, err := os.Stat(s.regent); err != nil {
		return fmt.Errorf("%w; build it with make build", err)
	}
	for _, address := range s.listen {
		l, err := net.Listen("tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return taken(address)
		} else if err != nil {
			return fmt.Errorf("LISTEN: %w", err)
		}
		l.Close()
	}
	for _, kind := range s.kinds() {
		if err := answers(kind); err != nil {
			return err
		}
	}
	return nil
}

func taken(address string) error {
	return fmt.Errorf("%s is taken by another program, perhaps another make dev or make run; stop that one, or choose other ports: make dev LISTEN=127.0.0.1:9080", address)
}

// answers returns an error if a variable names an emulator that is gone.
func answers(kind emulators.Kind) error {
	host := os.Getenv(kind.Variable())
	if host == "" {
		return nil
	}
	conn, err := net.DialTimeout("tcp", host, 5*time.Second)
	if err != nil {
		return fmt.Errorf("%s is set, perhaps for an earlier run, and no emulator answers there: %w; unset it, and make dev starts one", kind.Variable(), err)
	}
	return conn.Close()
}

func (s settings) kinds() []emulators.Kind { return []emulators.Kind{s.store, emulators.KindPubSub} }
