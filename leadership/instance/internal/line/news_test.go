package line_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
)

func TestALeaseGrantedElsewhereIsLookedAtOnceAndBeforeItCanEnd(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(), w.instance()
		leader := other.leads("ann")
		bob := i.waits(request("bob"))
		i.wants(1, "as bob joins")
		other.releases(leader)
		other.leadsFor("cy", leadership.MinLeaseDuration)
		bob.leads()
		bob.after(leadership.MinLeaseDuration+guard, leadership.MinLeaseDuration+guard+w.delay+100*time.Millisecond)
		i.wants(2, "to learn the end, and for the takeover")
	})
}

func TestALeaderThatRenewsElsewhereIsLookedAtOnceInALease(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(), w.instance()
		leader := other.leads("ann")
		i.waits(request("bob"))
		i.wants(1, "as bob joins")
		for range 5 {
			time.Sleep(lease / 3)
			other.renews(leader)
		}
		time.Sleep(time.Second)
		i.wants(1, "in 21 s of a lease of 12 s that is renewed every 4 s")
	})
}

func TestOldNewsMovesNothing(t *testing.T) {
	for name, old := range map[string]func(leadership.Lease) leadership.Lease{
		"a reply to an earlier renewal": func(l leadership.Lease) leadership.Lease {
			l.LeaseExpiration = l.LeaseExpiration.Add(-time.Second)
			l.ExpiresIn = time.Second
			return l
		},
		"a reply that was long on its way": func(l leadership.Lease) leadership.Lease {
			l.ExpiresIn = time.Hour
			return l
		},
		"an older revision": func(l leadership.Lease) leadership.Lease {
			return leadership.Lease{Election: jobs, State: leadership.Vacant, Revision: l.Revision - 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				i := w.instance()
				leader := i.leads("ann")
				bob := i.waits(request("bob"))
				time.Sleep(lease / 3)
				l, err := i.Renew(t.Context(), of(leader))
				if err != nil {
					t.Fatal(err)
				}
				i.learns(l)
				i.learns(old(l))
				bob.after(lease/3+lease+guard, lease/3+lease+guard+100*time.Millisecond)
				i.wants(2, "as bob joins, and for the takeover")
			})
		})
	}
}

func TestALeaseThatIsOverIsNotHeldAgain(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		const delay = 5 * time.Second
		i.locks(delay)
		leader := i.leads("ann")
		bob := i.waits(request("bob"))
		i.called()
		time.Sleep(lease + time.Second)
		l, err := i.Get(t.Context(), jobs)
		if err != nil || !l.Lapsed {
			t.Fatalf("got %+v, %v; want a lease that has run out unseen", l, err)
		}
		i.learns(l)
		i.learns(leader.Lease)
		if _, err := i.Expire(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		if refusal := i.waits(briefly(request("cy"))).refused(leadership.LeaseHeld); refusal.RetryAfter != delay-time.Second+guard-brief {
			t.Errorf("got %+v, want the remaining lock delay", refusal)
		}
		bob.after(lease+delay+guard, lease+delay+guard+100*time.Millisecond)
		i.wants(1, "for the takeover")
	})
}

func TestTheFasterOfTwoAnswersCounts(t *testing.T) {
	const late = 3 * time.Second
	for name, hear := range map[string]func(*instance, leadership.Lease){
		"a read": func(i *instance, _ leadership.Lease) {
			l, err := i.Get(i.Context(), jobs)
			if err != nil {
				i.Fatal(err)
			}
			i.learns(l)
		},
		"the event of the end": func(i *instance, l leadership.Lease) {
			time.Sleep(l.ExpiresIn + guard - time.Second)
			if _, err := i.Expire(i.Context(), jobs); err != nil {
				i.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				i := w.instance()
				leader := i.leads("ann")
				hold, sent, release := slowly()
				i.hooks(once(hold))
				bob := i.waits(request("bob"))
				<-sent
				time.Sleep(late)
				release()
				synctest.Wait()
				leader.ExpiresIn -= late - time.Second
				hear(i, leader.Lease)
				bob.after(lease+guard, lease+guard+100*time.Millisecond)
				bob.leads()
			})
		})
	}
}

func TestNewerStateLearntDuringAnAttemptCountsMoreThanItsAnswer(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		hold, sent, release := slowly()
		i.hooks(once(hold))
		bob := i.waits(request("bob"))
		<-sent
		time.Sleep(time.Second)
		l, err := leadership.New(w.store).Release(t.Context(), of(leader)) // of which there is no event
		if err != nil {
			t.Fatal(err)
		}
		i.learns(l)
		release()
		bob.after(time.Second, time.Second)
		bob.leads()
	})
}

func TestOlderStateLearntDuringAnAttemptCountsLessThanItsAnswer(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		hold, begun, release := held()
		i.hooks(hold)
		bob, cy := i.waits(request("bob")), i.waits(request("cy"))
		<-begun
		i.releases(leader)
		release()
		bob.leads()
		time.Sleep(2 * time.Second)
		cy.waiting("while bob leads")
		i.wants(1, "for the one who leads")
	})
}

func TestWhatTheStoreSaysAfterAnEventCountsMore(t *testing.T) {
	t.Run("it was released", func(t *testing.T) {
		in(t, func(t *testing.T, w *cluster) {
			i := w.instance(latest)
			leader := i.leads("ann")
			bob := i.waits(request("bob"))
			l, err := i.Release(t.Context(), of(leader))
			if err != nil {
				t.Fatal(err)
			}
			bob.waiting("before the API has told of the release")
			i.learns(l)
			bob.after(0, 0)
			bob.leads()
		})
	})
	t.Run("it was granted", func(t *testing.T) {
		in(t, func(t *testing.T, w *cluster) {
			i := w.instance()
			leader := i.leads("ann")
			i.waits(request("bob")).cancel()
			ask := keyed(request("bob"))
			i.waits(ask).cancel() // so that the line is empty
			synctest.Wait()
			i.releases(leader)
			g, err := i.Service.Acquire(t.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: "cy", LeaseDuration: lease})
			if err != nil {
				t.Fatal(err)
			}
			i.called()
			bob := i.waits(ask)
			i.learns(g.Lease)
			bob.after(lease+guard, lease+guard+100*time.Millisecond)
			i.wants(1, "for the takeover")
		})
	})
}

func TestNewsThatComesWithoutAnEventWakesTheHead(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		bob := i.waits(request("bob"))
		l, err := leadership.New(w.store).Release(t.Context(), of(leader))
		if err != nil {
			t.Fatal(err)
		}
		i.learns(l)
		bob.after(0, 0)
		bob.leads()
	})
}

func TestHeadsOfDifferentInstancesKeepApart(t *testing.T) {
	const most = 100*time.Millisecond - 1
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance(latest)
		leader := i.leads("ann")
		bob, cy := i.waits(request("bob")), i.waits(request("cy"))
		time.Sleep(time.Second)
		i.renews(leader)
		bob.after(time.Second+lease+guard+most, time.Second+lease+guard+most)
		bob.leads()
		cy.after(time.Second+2*(lease+guard+most), time.Second+2*(lease+guard+most))
	})
}

func TestWhatPutsOffTheHeadDoesNotPutOffAReleaseThatWasHeard(t *testing.T) {
	for name, distract := range map[string]func(*instance){
		"a configuration": func(i *instance) {
			_, err := i.Configure(i.Context(), leadership.ConfigureRequest{Election: jobs, ConfigureCommand: leadership.ConfigureCommand{
				Config: leadership.Config{LeaseDuration: time.Minute},
			}})
			if err != nil {
				i.Fatal(err)
			}
		},
		"the hub beginning anew": func(i *instance) { i.instances[0].hub.SetLive(true) },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				i, other := w.instance(latest), w.instance()
				leader := other.leads("ann")
				bob := i.waits(request("bob"))
				other.releases(leader)
				time.Sleep(w.delay + time.Millisecond)
				distract(other)
				bob.after(0, 2*w.delay+10*time.Millisecond)
				bob.leads()
			})
		})
	}
}

func TestReleaseIsSeenFromALaterEvent(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(), w.instance()
		leader := other.leads("ann")
		bob := i.waits(request("bob"))
		if _, err := leadership.New(w.store).Release(t.Context(), of(leader)); err != nil { // of which i does not hear
			t.Fatal(err)
		}
		other.locks(time.Second)
		bob.after(w.delay, w.delay+10*time.Millisecond)
		bob.leads()
	})
}

func TestAnUpdateOfAnUnknownLeaseIsLookedAt(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(), w.instance()
		leader := i.leads("ann")
		i.waits(request("bob"))
		i.called()
		silent := leadership.New(w.store)
		if _, err := silent.Release(t.Context(), of(leader)); err != nil {
			t.Fatal(err)
		}
		r := keyed(request("cy"))
		if _, err := silent.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		r.Metadata = []byte(`{"at":"home"}`)
		if _, err := other.Service.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(w.delay + 490*time.Millisecond)
		i.wants(0, "at once, for it cannot end so soon")
		time.Sleep(510 * time.Millisecond)
		i.wants(1, "to learn the end")
	})
}

func TestAfterASuspensionTheHeadAsksSoon(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		i.leadsFor("ann", time.Hour)
		i.waits(request("bob"))
		i.called()
		i.suspended.Store(int64(2 * time.Hour))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		i.wants(1, "though timers stood still")
	})
}

func TestEventsThatComeAgainAreNoNews(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		i.releases(i.leads("zed"))
		i.leads("ann")
		i.waits(request("bob"))
		i.called()
		history, err := i.Events(t.Context(), leadership.EventsRequest{Election: jobs})
		if err != nil {
			t.Fatal(err)
		}
		for n := range history {
			i.hub.Publish(history[len(history)-1-n])
			time.Sleep(2 * time.Second)
		}
		i.wants(0, "after events that were heard before")
	})
}

func TestAnEventThatCannotBeDoesNoHarm(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		bob := i.waits(request("bob"))
		i.called()
		i.hub.Publish(leadership.Event{Election: jobs, Revision: 1 << 40, Type: leadership.EventReleased, Token: 1 << 30})
		time.Sleep(time.Second)
		i.wants(1, "after the event")
		i.renews(leader)
		bob.after(time.Second+lease+guard, time.Second+lease+guard+100*time.Millisecond)
		i.wants(1, "for the takeover")
	})
}

func TestAnUpdateMovesNothingAndAConfigurationIsLookedAt(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(), w.instance()
		leader := other.leads("ann")
		i.waits(request("bob"))
		i.wants(1, "as bob joins")
		r := request("ann")
		r.Key, r.Metadata = &leader.Key, []byte(`{"at":"home"}`)
		if _, err := other.Service.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		i.wants(0, "after an update")
		_, err := other.Configure(t.Context(), leadership.ConfigureRequest{Election: jobs, ConfigureCommand: leadership.ConfigureCommand{
			Config: leadership.Config{LeaseDuration: time.Minute},
		}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		i.wants(1, "after a configuration")
	})
}

func TestDeletedElectionAnswersAllWaitersWithOneCall(t *testing.T) {
	for name, here := range map[string]bool{"here": true, "elsewhere": false} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				i := w.instance()
				i.leads("ann")
				var line []*waiter
				for c := range 100 {
					line = append(line, i.waits(request(leadership.CandidateID(fmt.Sprint("agent-", c)))))
				}
				i.called()
				l := i.deletes()
				if here {
					synctest.Wait()
					i.learns(l)
				}
				for _, c := range line {
					c.refused(leadership.ElectionDeleted)
					c.after(0, 10*time.Millisecond)
				}
				i.wants(1, "after the deletion")
			})
		})
	}
}

func TestDeletedVacantElectionAnswersAllWaiters(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		i.locks(time.Hour)
		i.leads("ann")
		time.Sleep(lease + time.Second)
		bob := i.waits(request("bob"))
		if _, err := i.Expire(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		i.deletes()
		bob.after(0, 10*time.Millisecond)
		bob.refused(leadership.ElectionDeleted)
	})
}

func TestAnElectionThatWasRecreatedIsAskedForAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		i.waits(request("bob"))
		i.called()
		silent := leadership.New(w.store)
		if _, err := silent.Release(t.Context(), of(leader)); err != nil {
			t.Fatal(err)
		}
		if _, err := silent.Delete(t.Context(), leadership.DeleteRequest{Election: jobs}); err != nil {
			t.Fatal(err)
		}
		i.locks(0)
		time.Sleep(10 * time.Millisecond)
		i.wants(1, "after the election came back")
	})
}

func TestCorruptRecordAnswersAllWaitersWithOneCall(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i := w.instance()
		leader := i.leads("ann")
		first := keyed(request("bob"))
		first.Wait = time.Second
		bob := i.waits(first)
		line := []*waiter{i.waits(request("cy")), i.waits(request("dee"))}
		bob.refused(leadership.LeaseHeld)
		i.called()
		i.hooks(always(leadership.Corrupt(jobs, errors.New("moths"))))
		i.releases(leader)
		for _, c := range line {
			c.refused(leadership.RecordCorrupt)
		}
		i.wants(1, "for all who wait")
	})
}
