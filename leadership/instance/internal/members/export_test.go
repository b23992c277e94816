package members

// Size is how much is remembered.
type Size struct {
	Own, Remote int // members, at this instance and at others
	Instances   int // others
	Elections   int
}

// Size returns how much is remembered.
func (r *Registry) Size() Size {
	return Size{len(r.own), r.incoming.copies, len(r.incoming.peers), len(r.elections)}
}
