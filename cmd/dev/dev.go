package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"regent/emulators"
	"regent/store"
)

// startLimit limits the start of an instance. Seconds are usual.
const startLimit = 3 * time.Minute

type dev struct {
	settings
	began     time.Time
	emulators *emulators.Set
	instances []*instance
	away      atomic.Int32 // instances that have ended, and were not started again yet

	mu  sync.Mutex // guards out
	out io.Writer
}

func (d *dev) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, "%5.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// develop starts everything, and ends it when ctx ends or something fails for good.
func develop(ctx context.Context, s settings, out io.Writer) (err error) {
	d := &dev{settings: s, began: time.Now(), out: out}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	mine, err := lock(d.file("lock"))
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another make dev uses %s; end that one, or give this one a folder and ports of its own: make dev BUILD=.build/second LISTEN=127.0.0.1:9080", s.dir)
	} else if err != nil {
		return err
	}
	defer mine.Close()
	if err := s.check(); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			d.say("stopped; nothing is left running")
		}
	}()
	if err := d.startEmulators(ctx); err != nil {
		return unlessDone(ctx, err)
	}
	defer func() { err = errors.Join(err, d.emulators.Stop(context.WithoutCancel(ctx))) }()
	if err := d.prepare(ctx); err != nil {
		return unlessDone(ctx, err)
	}
	return unlessDone(ctx, d.serve(ctx))
}

// unlessDone returns err, or nil if it only says that ctx has ended.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// startEmulators starts the emulators, and sets their variables for this process and its children.
func (d *dev) startEmulators(ctx context.Context) error {
	log, err := os.Create(d.file("emulators.log"))
	if err != nil {
		return err
	}
	d.say("starting the emulators of %s and Pub/Sub", d.store.Title())
	if d.emulators, err = emulators.Start(ctx, emulators.Config{Which: d.kinds(), Log: log}); err != nil {
		return err
	}
	for _, line := range d.emulators.Env() {
		name, host, _ := strings.Cut(line, "=")
		if err := os.Setenv(name, host); err != nil {
			return err
		}
	}
	for _, kind := range d.kinds() {
		d.say("%s: %s (%s)", kind.Title(), d.emulators.Host(kind), origin[d.emulators.Source(kind)])
	}
	return nil
}

// origin says where an emulator comes from.
var origin = map[emulators.Source]string{
	emulators.SourceEnv:    "it ran before, and stays",
	emulators.SourceGcloud: "of the Google Cloud SDK",
	emulators.SourceDocker: "a container",
}

// prepare creates the topics and tables that instances need.
func (d *dev) prepare(ctx context.Context) error {
	done, err := store.Migrate(ctx, d.spec())
	if err != nil {
		return err
	}
	d.say("%s", done)
	events, members := d.topics()
	if err := errors.Join(d.createTopic(ctx, events), d.createTopic(ctx, members)); err != nil {
		return err
	}
	d.say("topics: %s for events, %s for members", events, members)
	return nil
}

func (d *dev) createTopic(ctx context.Context, topic string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+d.emulators.Host(emulators.KindPubSub)+"/v1/"+topic, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	resp, err := local.Do(req)
	if err != nil {
		return fmt.Errorf("create the topic %s: %w", topic, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusConflict {
		return fmt.Errorf("create the topic %s: the emulator answers %s", topic, resp.Status)
	}
	return nil
}

// local makes calls on this machine.
var local = &http.Client{Transport: &http.Transport{Proxy: nil}, Timeout: time.Minute}

// serve runs the instances until ctx ends, or an emulator does.
func (d *dev) serve(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, d.stopInstances(context.WithoutCancel(ctx))) }()
	d.say("starting two instances")
	for i, listen := range d.listen {
		in := &instance{name: fmt.Sprintf("instance %d", i+1), file: d.file(fmt.Sprintf("instance-%d", i+1)), listen: listen, command: d.serveCommand}
		d.instances = append(d.instances, in)
		if err := errors.Join(os.WriteFile(in.file+".log", nil, 0o600), in.start()); err != nil {
			return err
		}
	}
	for _, in := range d.instances {
		if err := in.awaitReady(ctx); err != nil {
			return err
		}
	}
	d.say("both are ready")
	if err := d.tell(); err != nil {
		return err
	}
	return d.stay(ctx)
}

// stay restarts instances until ctx ends, or an emulator does.
func (d *dev) stay(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, in := range d.instances {
		running.Go(func() { d.keep(ctx, in) })
	}
	select {
	case <-ctx.Done():
		d.say("stopping")
		return nil
	case kind := <-d.emulators.Ended(ctx):
		return fmt.Errorf("the %s emulator has ended by itself, so all ends; its log is %s; start again with make dev", kind.Title(), d.file("emulators.log"))
	}
}

// keep starts an instance again whenever it has ended, until ctx ends or it does not start.
func (d *dev) keep(ctx context.Context, in *instance) {
	for {
		select {
		case <-in.ended():
		case <-ctx.Done():
			return
		}
		other := "goes on"
		if int(d.away.Add(1)) == len(d.instances) {
			other = "is away, too"
		}
		d.say("%s (%s) has ended; the other %s. It is started again in %v, as Cloud Run does. Log: %s.log", in.name, in.url, other, d.pause, in.file)
		select {
		case <-time.After(d.pause):
		case <-ctx.Done():
			return
		}
		if err := errors.Join(in.start(), in.awaitReady(ctx)); ctx.Err() != nil {
			return
		} else if err != nil {
			d.say("%v. It stays away; Ctrl-C ends the rest", err)
			return
		}
		d.away.Add(-1)
		d.say("%s is back", in.name)
	}
}

func (d *dev) stopInstances(ctx context.Context) error {
	errs := make([]error, len(d.instances))
	var ending sync.WaitGroup
	for i, in := range d.instances {
		ending.Go(func() { errs[i] = in.stop(ctx) })
	}
	ending.Wait()
	return errors.Join(errs...)
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
