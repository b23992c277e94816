package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership/instance/internal/members"
)

func TestAPanicLeavesTheMembersUnlocked(t *testing.T) {
	t.Parallel()
	r := &roll{now: func() time.Duration { return 0 }}
	func() {
		defer func() { _ = recover() }()
		r.do(func(*members.Registry, time.Duration) { panic("broken") })
	}()
	assert.True(t, r.mu.TryLock(), "they are locked")
}
