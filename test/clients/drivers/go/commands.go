package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/clients"
)

// obey carries out a command, or begins to.
func (d *driver) obey(command string) error {
	verb, argument, _ := strings.Cut(command, " ")
	switch verb {
	case "cancel":
		d.end()
	case "stop":
		d.stop()
		if d.leading() == nil {
			d.end()
		}
	case "watch":
		d.beside.Go(func() { d.watch(argument) })
	case "report":
		return d.report(argument)
	case "call":
		d.beside.Go(func() { d.call(argument) })
	default:
		return errors.New("there is stop, cancel, watch, report and call")
	}
	return nil
}

func (d *driver) report(text string) error {
	progress, err := strconv.ParseInt(text, 10, 64)
	l := d.leading()
	if err == nil && l == nil {
		err = errors.New("it does not lead")
	}
	if err != nil {
		return err
	}
	return l.Report(client.Report{Progress: progress})
}

// watch writes the events of the election from after a revision, "" for none, until the driver
// ends.
func (d *driver) watch(after string) {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	go func() {
		select {
		case <-d.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	for news, err := range d.client.Watch(ctx, client.WatchRequest{Election: d.election, After: after}) {
		switch {
		case err != nil && !d.isStopped():
			d.fail("watch", err)
			if d.options.Idle {
				d.end()
			}
		case news.Event != nil:
			write(clients.Event{Event: clients.Seen, Revision: int64(news.Event.Revision), Type: string(news.Event.Type), Token: int64(news.Event.Token)})
		case news.Lease != nil:
			write(clients.Event{Event: clients.Seen, Revision: int64(news.Lease.Revision), Token: int64(news.Lease.Token)})
		}
	}
}

// call makes a call of the kind.
func (d *driver) call(kind string) {
	if err := d.make(kind); err != nil {
		d.fail(kind, err)
		return
	}
	write(clients.Event{Event: clients.Done, Call: kind})
}

func (d *driver) make(kind string) (err error) {
	l := d.leading()
	if l == nil && kind != "read" && kind != "members" && kind != "follow" && kind != "propose" {
		return errors.New("it does not lead")
	}
	switch kind {
	case "read":
		_, err = d.client.Get(d.ctx, d.election)
	case "members":
		_, err = d.client.Members(d.ctx, d.election)
	case "follow":
		return d.follow()
	case "propose":
		var p leadership.Proposal
		p, err = d.client.Propose(d.ctx, leadership.ProposeRequest{Election: d.election, ID: "ask", Kind: "ask", Wait: 5 * time.Minute})
		if err == nil && p.Decision != nil {
			write(clients.Event{Event: clients.Item, Type: string(p.Decision.Verdict)})
		}
	case "decide":
		_, err = l.Decide(d.ctx, "ask", leadership.ProposalAccepted, "")
	case "checkpoint":
		err = l.Checkpoint(d.ctx, "", "here")
	case "newer":
		err = l.Checkpoint(d.ctx, "", "there")
	case "begin":
		var e leadership.Effect
		if e, err = l.BeginEffect(d.ctx, "once"); err == nil {
			write(clients.Event{Event: clients.Item, Type: string(e.State)})
		}
	case "finish":
		err = l.FinishEffect(d.ctx, "once", "here")
	case "append":
		var j *client.Journal
		if j, err = l.Journal(d.ctx); err == nil {
			_, err = j.Append(d.ctx, client.Entry{Data: "here"})
		}
	case "handover":
		err = l.HandOver(d.ctx, "")
	case "check":
		_, err = d.client.CheckToken(d.ctx, leadership.TokenCheck{Election: d.election, Token: l.Token()})
	default:
		err = fmt.Errorf("unknown kind of call %q", kind)
	}
	return err
}

// follow writes five items of the election's journal.
func (d *driver) follow() error {
	n := 0
	for item, err := range d.client.Follow(d.ctx, d.election, 0) {
		if err != nil {
			return err
		}
		kind := "entry"
		if item.Snapshot != nil {
			kind = "snapshot"
		}
		write(clients.Event{Event: clients.Item, Revision: int64(item.Index()), Type: kind})
		if n++; n == 5 {
			break
		}
	}
	return nil
}
