package simulation

import "time"

// send lets a message arrive: once, later than others, twice, or never. arrive must tolerate all of
// that.
func (s *simulation) send(arrive func()) {
	w, f := s.w, &s.plan.faults
	if w.chance(f.lost) {
		s.figures.Faults++
		return
	}
	w.after(s.delay(), arrive)
	if w.chance(f.doubled) {
		s.figures.Faults++
		w.after(s.delay()+w.upTo(2*time.Minute), arrive)
	}
}

// patient is how long an agent waits for an answer, or its proxy lets it wait.
func (s *simulation) patient(d time.Duration) time.Duration {
	if s.w.chance(s.plan.faults.cut) {
		return s.w.upTo(d)
	}
	return d
}

// delay draws how long a message takes.
func (s *simulation) delay() time.Duration {
	d := s.plan.swift/2 + s.w.upTo(s.plan.swift)
	if s.w.chance(s.plan.faults.late) {
		s.figures.Faults++
		d += s.w.upTo([]time.Duration{100 * time.Millisecond, s.plan.lease, time.Minute, 3 * time.Minute}[s.w.random.IntN(4)])
	}
	return d
}
