package hub

import "time"

// rumour is how it stands with an event that was heard and that the history does not have, or not yet: on an emulator it may be there a
// moment later. If somebody has made it up, it never is.
type rumour struct {
	due   time.Time // when to look for it
	tries int       // looks that have not found it
}

const (
	settling = 20 * time.Millisecond // between the first two looks; twice as long between the next two, and so on
	maxTries = 10                    // and then the history is believed
)

// newRumour returns one that is to be looked into at once.
func newRumour() rumour { return rumour{due: time.Now()} }

// missed takes a look, begun at that time, which has not found the event, and says whether to forget it.
func (r *rumour) missed(began time.Time) (forget bool) {
	if began.Before(r.due) {
		return false // it may have come too early
	}
	r.due = time.Now().Add(settling << r.tries)
	r.tries++
	return r.tries >= maxTries
}
