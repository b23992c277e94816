package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"regent/cmd/regent/internal/leash"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

// relay passes signals on to the command until the command has ended. The first SIGTERM or SIGINT
// begins a hand-over, and is passed on once the successor is ready, or is not ready in time. A
// second such signal is passed on at once. relay returns the signals that the command did not get.
func (r *runner) relay(lease *client.Lease, to chan os.Signal, over <-chan struct{}) (left []os.Signal) {
	ctx, cancel := context.WithCancel(lease.Context())
	var held os.Signal         // held back until the hand-over is done
	var handed <-chan struct{} // closed when the hand-over is done
	defer func() {
		cancel()
		if handed != nil {
			<-handed
		}
	}()
	pass := func(s os.Signal) {
		select {
		case to <- s:
		case <-over:
			left = append(left, s)
		}
	}
	for begun := false; ; {
		select {
		case s := <-r.signals:
			if !begun && (s == syscall.SIGTERM || s == syscall.SIGINT) {
				begun, held = true, s
				handed = r.handOver(ctx, lease)
				continue
			}
			if held != nil && ends(s) {
				r.log.Info("the command is stopped without waiting for the successor", "election", r.election)
				held = nil
			}
			pass(s)
		case <-handed:
			if handed = nil; held != nil {
				pass(held)
			}
			held = nil
		case <-over:
			if held != nil {
				left = append(left, held)
			}
			for len(to) > 0 {
				left = append(left, <-to)
			}
			return left
		}
	}
}

// handOver names the best waiting candidate as the successor. The channel is closed when the
// successor is ready, or waiting for it is over.
func (r *runner) handOver(ctx context.Context, lease *client.Lease) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := lease.HandOver(ctx, "")
		log := r.log.With("election", r.election, "token", lease.Token())
		switch {
		case err == nil:
			log.Info("the successor is ready; the command is stopped", "successor", lease.Succession().To)
		case ctx.Err() != nil: // the command has ended, or is stopped anyway
		case errors.Is(err, leadership.NotEligible):
			log.Info("no candidate waits; the command is stopped, and the lease released")
		default:
			log.Warn("the lease is not handed over; the command is stopped", "reason", err)
		}
	}()
	return done
}

// prepare runs the command of --on-succession, which loads the data that the successor needs.
func (r *runner) prepare(ctx context.Context, s client.Succession) error {
	r.log.Info("preparing to take over", "election", s.Election, "leader", s.LeaderID, "left", s.Left)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", r.onSuccession)
	cmd.Stdout, cmd.Stderr = r.files[2], r.files[2]
	cmd.Env = r.besideEnv(s.CandidateID, s.LeaderID, s.Token)
	leash.OwnGroup(cmd)
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("--on-succession: %w", cmp.Or(context.Cause(ctx), err))
	}
	return nil
}

// inheritedFile writes the last leader's checkpoint to a file, which remove deletes, and returns
// the variable that names the file; nil if there is no checkpoint.
func inheritedFile(lease *client.Lease) (variables []string, remove func(), err error) {
	left := lease.Inherited()
	if left == nil {
		return nil, func() {}, nil
	}
	text, err := wire.Marshal(wire.NewGrant(leadership.Grant{Inherited: left}).Inherited)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.CreateTemp("", "regent-inherited-*.json") // readable only by this user
	if err != nil {
		return nil, nil, err
	}
	remove = func() { os.Remove(f.Name()) }
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return nil, nil, err
	}
	return []string{"REGENT_INHERITED_FILE=" + f.Name()}, remove, nil
}
