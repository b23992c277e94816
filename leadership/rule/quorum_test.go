package rule_test

import (
	"fmt"
	"testing"

	"regent/leadership"
)

func electorate(n int) leadership.Names {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("m%d", i))
	}
	return leadership.NewNames(names...)
}

func TestAMajorityToleratesTheFailuresOfTheTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ size, need, tolerated int }{
		{1, 1, 0}, {2, 2, 0}, {3, 2, 1}, {4, 3, 1}, {5, 3, 2}, {6, 4, 2}, {7, 4, 3}, {31, 16, 15},
	} {
		q := leadership.QuorumPolicy{Electorate: electorate(c.size)}
		if q.Size() != c.size || q.Needed() != c.need || q.ToleratedFailures() != c.tolerated {
			t.Errorf("of %d members %d are needed and %d may fail, want %d and %d", q.Size(), q.Needed(), q.ToleratedFailures(), c.need, c.tolerated)
		}
		q.Need = 1
		if q.Needed() != 1 || q.ToleratedFailures() != c.size-1 {
			t.Errorf("of %d members one is needed by the policy, and not %d", c.size, q.Needed())
		}
	}
	if none := (leadership.QuorumPolicy{}); none.Needed() != 0 || none.ToleratedFailures() != 0 {
		t.Error("a policy without an electorate asks for a quorum")
	}
}
