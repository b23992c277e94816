package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

func damageCases() []contractCase {
	cases := make([]contractCase, len(Damages))
	for i, d := range Damages {
		cases[i] = contractCase{"a record that cannot be trusted is refused by name, and never grants: " + string(d), func(h *handles) { h.refusesDamaged(d) }}
	}
	return cases
}

// refusesDamaged damages a held record and one whose lease is over.
func (h *handles) refusesDamaged(d Damage) {
	for _, over := range []bool{false, true} {
		e := leadership.Election(fmt.Sprintf("damaged-%v", over))
		h.update(h.a, e, acquire("ann", time.Minute))
		h.update(h.a, e, apply(leadership.Release{LeaseRequest: renewalOf(e, "ann", 1).Request()}))
		h.update(h.a, e, acquire("ann", time.Minute))
		h.update(h.a, "whole", acquire("ann", time.Hour))
		if over {
			h.backing.Advance(h, 2*time.Minute)
		}
		h.backing.Damage(h, e, d)
		for range 2 { // refusing it does not mend it
			_, err := h.b.Update(h.Context(), e, rule.Expect{}, acquire("bob", time.Minute))
			h.corrupt("update", err)
			_, err = h.a.Update(h.Context(), e, rule.Expect{}, acquire("bob", time.Minute))
			h.corrupt("update by the handle that knew the record", err)
			_, err = h.b.Get(h.Context(), e)
			h.corrupt("get", err)
		}
		h.listsDamaged(e, d)
		if got := h.events(h.b, e); len(got) != 3 {
			h.Errorf("the history has %d events, want 3", len(got))
		}
	}
}

// listsDamaged expects the list, and that of held elections, to have the whole record, and of the
// damaged one no more than its name, in the list once, however long a page is.
func (h *handles) listsDamaged(e leadership.Election, d Damage) {
	h.Helper()
	byHistory := d == TokenBehind || d == RecordGone // only a read of the history can tell, and not every list makes one
	for _, limit := range []int{1, 2, 100} {
		whole, untrusted := h.pages("", "", limit)
		held := h.held(limit)
		if !slices.Contains(whole, "whole") || !slices.Contains(held, "whole") {
			h.Errorf("the lists have lost the whole ones: %v, and held are %v", whole, held)
		}
		if !byHistory && slices.Contains(held, e) {
			h.Errorf("%d at a time, %s is held: %v", limit, e, held)
		}
		named := len(slices.DeleteFunc(untrusted, func(other leadership.Election) bool { return other != e }))
		if listed := slices.Contains(whole, e); !byHistory && (listed || named != 1) {
			h.Errorf("%d at a time, %s is listed: %v, and named as untrusted %d times, want once", limit, e, listed, named)
		}
	}
}

func (h *handles) corrupt(call string, err error) {
	h.Helper()
	if !errors.Is(err, leadership.RecordCorrupt) {
		h.Errorf("%s: got %v, want %s", call, err, leadership.RecordCorrupt)
	}
}
