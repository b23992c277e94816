package storagefence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/fence/storagefence"
)

// inTurn applies the faults one after the other to the uploads, or to the other requests.
func inTurn(uploads bool, faults ...fault) func(request) fault {
	return func(r request) fault {
		if (r == upload) != uploads || len(faults) == 0 {
			return fault{}
		}
		next := faults[0]
		faults = faults[1:]
		return next
	}
}

func TestWriteIsMadeOnceDespiteLostMessages(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]fault{
		"the request":               {{lost: true}},
		"the reply":                 {{lostBack: true}},
		"half of the reply":         {{cutBack: true}},
		"one of everything":         {{lost: true}, reply(503), reply(429), {cutBack: true}},
		"a reply, then the service": {reply(500), reply(502), reply(504), reply(408), {lostBack: true}},
		"a request that comes late": {{late: 100 * time.Millisecond}},
		"one that comes after":      {{late: time.Hour}},
	} {
		for _, uploads := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				b := f.bucket(t, storagefence.Config{})
				f.put("state", "zero", nil)
				f.faults = inTurn(uploads, faults...)
				g, err := b.Replace(t.Context(), "state", 1, planner(3), []byte("one"))
				time.Sleep(2 * time.Hour)
				if err != nil || len(f.landed) != 1 || g != f.landed[0].version.Generation || f.landed[0].content != "one" {
					t.Errorf("%s, of an upload %t: %v, generation %d, and %d writes; want one", name, uploads, err, g, len(f.landed))
				}
			})
		}
	}
}

func TestReadIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.put("state", "a content of some length", nil)
		f.faults = inTurn(false, fault{lost: true}, fault{cutBack: true}, reply(503), fault{}, fault{cutBack: true})
		if o := read(t, f.bucket(t, storagefence.Config{}), "state"); string(o.Content) != "a content of some length" {
			t.Errorf("%q", o.Content)
		}
	})
}

func TestReadIsConsistent(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.put("state", "of others", nil)
			b := f.bucket(t, storagefence.Config{})
			moved := false
			f.faults = func(r request) fault {
				// between the two requests of a read
				if r == open && !moved {
					moved = true
					f.put("state", "by 34", map[string]string{"regent-election": "planner", "regent-fencing-token": "34"})
					if gone {
						delete(f.objects, "state")
					}
				}
				return fault{}
			}
			o := read(t, b, "state")
			if gone && o.Generation != 0 || !gone && (string(o.Content) != "by 34" || o.Mark != planner(34)) {
				t.Errorf("%q of generation %d by %v", o.Content, o.Generation, o.Mark)
			}
		})
	}
}

func TestALateUploadOfAFormerLeaderChangesNothing(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"an object": true, "no object yet": false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			b := f.bucket(t, storagefence.Config{})
			if there {
				f.put("state", "zero", nil)
			}
			f.faults = inTurn(true, fault{late: time.Minute})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := b.Write(ctx, "state", planner(33), nil); !errors.Is(err, leadership.OutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want OUTCOME_UNKNOWN, for the upload is still on its way", name, err)
			}
			require.NoError(t, b.Write(t.Context(), "state", planner(34), []byte("by 34")))
			time.Sleep(time.Hour)
			if o := read(t, b, "state"); string(o.Content) != "by 34" || len(f.landed) != 1 {
				t.Errorf("%s: %q after %d writes, want that of 34 alone", name, o.Content, len(f.landed))
			}
		})
	}
}

func TestOvertakenWriteWithALostReplyIsUnknown(t *testing.T) {
	t.Parallel()
	for by, also := range map[leadership.Token]error{33: nil, 34: leadership.TokenStale} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			b := f.bucket(t, storagefence.Config{})
			other := f.bucket(t, storagefence.Config{})
			f.faults = func(r request) fault {
				if r != upload {
					return fault{}
				}
				f.faults = nil
				return fault{lostBack: true, then: func() {
					assert.NoError(t, other.Write(t.Context(), "state", planner(by), []byte("another")))
				}}
			}
			err := b.Write(t.Context(), "state", planner(33), []byte("one"))
			if !errors.Is(err, leadership.OutcomeUnknown) || also != nil && !errors.Is(err, also) {
				t.Errorf("overtaken by %d: %v, want OUTCOME_UNKNOWN and %v", by, err, also)
			}
			if len(f.landed) != 2 || f.landed[1].content != "another" {
				t.Errorf("overtaken by %d: %v, want one write each", by, f.landed)
			}
		})
	}
}

func TestWriteThatLostARaceIsDecidedAgain(t *testing.T) {
	t.Parallel()
	for by, want := range map[leadership.Token]error{32: nil, 33: nil, 34: leadership.TokenStale} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			b := f.bucket(t, storagefence.Config{})
			other := f.bucket(t, storagefence.Config{})
			f.faults = func(r request) fault {
				if r == upload {
					f.faults = nil
					assert.NoError(t, other.Write(t.Context(), "state", planner(by), nil))
				}
				return fault{}
			}
			err := b.Write(t.Context(), "state", planner(33), nil)
			if !errors.Is(err, want) || (err == nil) != (want == nil) || coded(err) {
				t.Errorf("after a write by %d: %v, want %v", by, err, want)
			}
		})
	}
}

func TestMarkPatchedWithoutTheContentCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.put("state", "zero", nil)
		f.faults = func(r request) fault {
			if v := &f.objects["state"].version; r == upload && v.Metageneration == 1 {
				v.Metageneration++
				v.Metadata = map[string]string{"regent-election": "planner", "regent-fencing-token": "34"}
			}
			return fault{}
		}
		assert.ErrorIs(t, f.bucket(t, storagefence.Config{}).Write(t.Context(), "state", planner(33), nil), leadership.TokenStale)
	})
}

func TestAttemptsAreBoundedAndGetSlower(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		what     fault
		at       request
		code     leadership.Code
		min, max time.Duration
	}{
		"a service that is away":       {reply(503), stat, leadership.StoreUnavailable, 30 * time.Second, 96 * time.Second},
		"uploads that get no reply":    {fault{lost: true}, upload, leadership.OutcomeUnknown, 30 * time.Second, 96 * time.Second},
		"too many writes":              {reply(429), upload, leadership.StoreUnavailable, 30 * time.Second, 96 * time.Second},
		"a service that says how long": {reply(429, "Retry-After", "40"), upload, leadership.StoreUnavailable, 7 * 40 * time.Second, 7 * 40 * time.Second},
		"one that says an hour":        {reply(503, "Retry-After", "3600"), stat, leadership.StoreUnavailable, 7 * time.Minute, 7 * time.Minute},
		"others who come first":        {reply(412), upload, leadership.StoreUnavailable, 1500 * time.Millisecond, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			n := 0
			f.faults = func(r request) fault {
				if r != c.at {
					return fault{}
				}
				n++
				return c.what
			}
			start := time.Now()
			err := f.bucket(t, storagefence.Config{}).Write(t.Context(), "state", planner(3), nil)
			if took := time.Since(start); n != 8 || took < c.min || took > c.max || !errors.Is(err, c.code) {
				t.Errorf("%s: %v after %d attempts and %v, want %s after 8 and from %v to %v", name, err, n, took, c.code, c.min, c.max)
			}
		})
	}
}
