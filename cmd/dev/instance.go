package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"regent/emulators"
)

// instance is a regent serve that can be started again.
type instance struct {
	name    string
	file    string // its log is file.log, and its process id stands in file.pid
	listen  string // HOST:PORT; with a port that is not 0 once it has served
	command func(listen string) []string
	guard   *emulators.Guard
	log     *serveLog
	url     string // once it serves
}

func (in *instance) start() error {
	file, err := os.OpenFile(in.file+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	in.log = &serveLog{file: file, serving: make(chan string, 1)}
	// The shell writes its process id, and then becomes regent, which keeps the id.
	command := append([]string{"/bin/sh", "-c", `echo $$ >"$0" && exec "$@"`, in.file + ".pid"}, in.command(in.listen)...)
	in.guard, err = emulators.StartGuard(command, nil, in.log)
	return err
}

// awaitReady blocks until the instance is ready.
func (in *instance) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	select {
	case address := <-in.log.serving:
		in.listen, in.url = address, "http://"+address
	case <-in.ended():
		return in.died()
	case <-ctx.Done():
		return fmt.Errorf("%s does not start; its log is %s.log: %w", in.name, in.file, ctx.Err())
	}
	for {
		said, err := ask(ctx, in.url+"/health/ready")
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-in.ended():
			return in.died()
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready; its log is %s.log: %w %s", in.name, in.file, err, said)
		}
	}
}

// ask returns the body of a GET of url, and an error unless the status is 200.
func ask(ctx context.Context, url string) (text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := local.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return strings.TrimSpace(body.String()), err
}

// ended returns a channel that is closed when the process has ended.
func (in *instance) ended() <-chan struct{} { return in.guard.Ended() }

// died returns an error with the end of the log.
func (in *instance) died() error {
	text, _ := os.ReadFile(in.file + ".log")
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	const shown = 3
	last := strings.Join(lines[max(0, len(lines)-shown):], "\n  ")
	if strings.Contains(last, in.listen+": bind: address already in use") {
		return taken(in.listen)
	}
	return fmt.Errorf("%s does not start (log: %s.log):\n  %s", in.name, in.file, last)
}

func (in *instance) stop(ctx context.Context) error {
	if in.guard == nil {
		return nil
	}
	if err := in.guard.Stop(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", in.name, err)
	}
	return nil
}

// serveLog writes the log of an instance to a file, and finds in it the address at which the
// instance serves.
type serveLog struct {
	file    *os.File
	serving chan string // gets the address once
	rest    []byte      // of a line that is not complete
}

func (l *serveLog) Write(p []byte) (int, error) {
	lines := bytes.Split(append(l.rest, p...), []byte("\n"))
	l.rest = bytes.Clone(lines[len(lines)-1])
	for _, line := range lines[:len(lines)-1] {
		var said struct{ Message, Address string }
		if json.Unmarshal(line, &said) == nil && said.Message == "serving" {
			select {
			case l.serving <- said.Address:
			default:
			}
		}
	}
	return l.file.Write(p)
}
