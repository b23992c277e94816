package fence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/fencetest"
)

func TestALowerTokenIsRefusedAndAHigherOneRaisesTheMark(t *testing.T) {
	t.Parallel()
	at := func(token leadership.Token) fence.Mark { return fence.Mark{Election: "planner", Token: token} }
	for _, c := range []struct {
		name    string
		mark, w fence.Mark
		want    error
		detail  string
	}{
		{"the first", fence.Mark{}, at(1), nil, ""},
		{"the same", at(33), at(33), nil, ""},
		{"one below", at(34), at(33), leadership.TokenStale, "token 33 of election \"planner\" is stale: 34 has written"},
		{"of another election", at(34), fence.Mark{Election: "reports", Token: 99}, leadership.InvalidArgument, "guarded by election \"planner\""},
		{"beside a mark that is none", at(-1), at(34), leadership.RecordCorrupt, "an operator must repair it"},
		{"beside a mark without an election", fence.Mark{Token: 3}, at(34), leadership.RecordCorrupt, "an operator must repair it"},
		{"beside a mark without a token", at(0), at(34), leadership.RecordCorrupt, "an operator must repair it"},
	} {
		next, err := c.mark.Admit(c.w)
		wantMark := c.w
		if c.want != nil {
			wantMark = c.mark
		}
		if !errors.Is(err, c.want) || next != wantMark || err != nil && !strings.Contains(err.Error(), c.detail) {
			t.Errorf("%s: %v and %v; want %v and %v", c.name, next, err, wantMark, c.want)
		}
	}
}

func TestGuardIsAFence(t *testing.T) {
	t.Parallel()
	fencetest.Run(t, func(testing.TB) fencetest.Place {
		guard, values := new(fence.Guard), map[string]int64{}
		return fencetest.Place{
			Write: func(_ context.Context, resource string, w fence.Mark, value int64) error {
				return guard.Do(resource, w, func() error { values[resource] = value; return nil })
			},
			Read: func(_ testing.TB, resource string) (fence.Mark, int64) { return guard.Mark(resource), values[resource] },
		}
	})
}

func TestALaterLeaderWaitsForTheWriteThatIsUnderWay(t *testing.T) {
	t.Parallel()
	var guard fence.Guard
	var written []leadership.Token
	write := func(token leadership.Token, meanwhile func()) {
		err := guard.Do("disk", fence.Mark{Election: "planner", Token: token}, func() error {
			meanwhile()
			written = append(written, token)
			return nil
		})
		assert.NoError(t, err)
	}
	var later sync.WaitGroup
	write(33, func() {
		assert.True(t, guard.Busy(), "another leader could come between the look at the mark and the end of the write")
		later.Go(func() { write(34, func() {}) })
	})
	later.Wait()
	if !slices.Equal(written, []leadership.Token{33, 34}) || guard.Busy() {
		t.Errorf("written in the order %v", written)
	}
}

func TestAGuardRaisesTheMarkOfAWriteThatFails(t *testing.T) {
	t.Parallel()
	var guard fence.Guard
	broken := errors.New("broken")
	assert.ErrorIs(t, guard.Do("disk", fence.Mark{Election: "planner", Token: 34}, func() error { return broken }), broken, "the write's")
	never := func() error { t.Error("a stale leader wrote"); return nil }
	assert.ErrorIs(t, guard.Do("disk", fence.Mark{Election: "planner", Token: 33}, never), leadership.TokenStale, "token 33 after 34")
}

// One check covers everything that is written with it.
func ExampleGuard() {
	var guard fence.Guard
	robot := func(w fence.Mark, steps int) {
		err := guard.Do("arm", w, func() error {
			fmt.Printf("token %d: %d steps\n", w.Token, steps)
			return nil
		})
		if errors.Is(err, leadership.TokenStale) {
			fmt.Printf("token %d is stale\n", w.Token)
		}
	}
	robot(fence.Mark{Election: "planner", Token: 33}, 1000)
	robot(fence.Mark{Election: "planner", Token: 34}, 1)
	robot(fence.Mark{Election: "planner", Token: 33}, 1000) // it was paused
	// Output:
	// token 33: 1000 steps
	// token 34: 1 steps
	// token 33 is stale
}
