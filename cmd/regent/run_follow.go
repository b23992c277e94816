package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"regent/cmd/regent/internal/leash"
	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/client"
)

// followLimit is how long a command may follow one leader: for ever.
const followLimit = 100 * 365 * 24 * time.Hour

// followed is the leader that a command follows; the zero value is none.
type followed struct {
	id      leadership.CandidateID
	token   leadership.Token
	address string
	grace   time.Duration
}

// follow runs the command of --follow-command while another candidate leads, until stop is called.
// stop returns when the command and all processes that it started are gone. It may be called again.
func (r *runner) follow(ctx context.Context) (stop func()) {
	if r.followCommand == "" {
		return func() {}
	}
	return beside(ctx, r.followLeaders)
}

// beside calls run on a goroutine. stop ends its context, and waits for it.
func beside(ctx context.Context, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// followLeaders watches the election, and follows each leader until the next.
func (r *runner) followLeaders(ctx context.Context) {
	known, stop := followed{}, func() {}
	defer func() { stop() }()
	warned := false
	become := func(now followed) {
		if now.id == r.candidate.ID {
			if !warned {
				r.log.Warn("this candidate itself leads, by another process or in an earlier term, and beside that the command does not run; give each process a --candidate of its own", "election", r.election, "candidate", now.id)
			}
			now, warned = followed{}, true
		}
		if now == known {
			return
		}
		stop()
		known, stop = now, func() {}
		if now.id != "" {
			stop = beside(ctx, func(ctx context.Context) { r.followOne(ctx, now) })
		}
	}
	for news, err := range r.server.Watch(ctx, client.WatchRequest{Election: r.election}) {
		switch e := news.Event; {
		case err != nil && ctx.Err() == nil:
			r.log.Error("the leaders of the election are not followed any more", "election", r.election, "reason", err)
		case news.Lease != nil:
			become(r.followedOf(*news.Lease))
		case e == nil || e.LeaderID == known.id && e.Token == known.token && e.Type != leadership.EventUpdated:
		case e.LeaderID == "" || e.LeaderID == r.candidate.ID:
			become(followed{})
		default:
			if e.LeaderID != known.id || e.Token != known.token {
				become(followed{})
			}
			if l, ok := r.read(ctx, e.Revision); ok {
				become(r.followedOf(l))
			}
		}
	}
}

// read reads the election as it was at the revision or later, however long that takes; ok is false
// if ctx ended before.
func (r *runner) read(ctx context.Context, at leadership.Revision) (l leadership.Lease, ok bool) {
	for tries := 0; ; tries++ {
		reading, err := r.server.Read(ctx, leadership.ReadRequest{Election: r.election, Known: at})
		if err == nil || ctx.Err() != nil {
			return reading.Lease, err == nil
		}
		r.log.Warn("the leader could not be read; trying again", "election", r.election, "reason", err)
		sleep(ctx, backoff(tries, minRestartPause, maxRestartPause))
	}
}

func (r *runner) followedOf(l leadership.Lease) followed {
	if l.State != leadership.Held {
		return followed{}
	}
	grace := r.grace
	if grace == derivedGrace {
		grace = min(l.LeaseDuration/10, maxGrace)
	}
	return followed{l.LeaderID, l.Token, l.Metadata.Address(), grace}
}

// followOne runs the command, and runs it again whenever it has ended, until ctx ends.
func (r *runner) followOne(ctx context.Context, leader followed) {
	log := r.log.With("election", r.election, "leader", leader.id, "token", leader.token)
	null, err := os.Open(os.DevNull)
	if err != nil {
		log.Error("the leader is not followed", "reason", err)
		return
	}
	defer null.Close()
	log.Info("following the leader")
	deadline := boottime.Now() + followLimit
	for tries := 0; ctx.Err() == nil; tries++ {
		begun := boottime.Now()
		end, err := leash.Run(ctx, leash.Config{
			Path: "/bin/sh", Args: []string{"/bin/sh", "-c", r.followCommand}, Files: [3]*os.File{null, r.files[2], r.files[2]},
			Env:              append(r.besideEnv(r.candidate.ID, leader.id, leader.token), "REGENT_LEADER_ADDRESS="+leader.address),
			DeadlineVariable: followMark, NewPrivileges: r.newPrivileges, Deadline: func() time.Duration { return deadline }, Grace: leader.grace, Log: log,
		})
		if ctx.Err() != nil {
			return
		}
		if boottime.Now()-begun >= longRun {
			tries = 0
		}
		pause := backoff(tries, minRestartPause, maxRestartPause)
		log.Warn("the command that follows the leader has ended", "code", end.Code, "reason", err, "again in", pause)
		sleep(ctx, pause)
	}
}

// followMark marks the processes of a command that follows.
const followMark = "REGENT_FOLLOW_FILE"

// besideEnv returns the environment of a command that runs while another candidate leads.
func (r *runner) besideEnv(candidate, leader leadership.CandidateID, token leadership.Token) []string {
	return append(r.publicEnv(),
		"REGENT_ELECTION="+string(r.election), "REGENT_CANDIDATE_ID="+string(candidate), "REGENT_SERVER="+r.cli.server,
		"REGENT_LEADER_ID="+string(leader), fmt.Sprintf("REGENT_LEADER_TOKEN=%d", token),
	)
}
