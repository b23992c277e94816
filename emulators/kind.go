package emulators

import (
	"fmt"
	"slices"
	"strings"
)

// Kind names one of the emulators.
type Kind string

// The emulators that there are.
const (
	KindFirestore Kind = "firestore"
	KindSpanner   Kind = "spanner"
	KindPubSub    Kind = "pubsub"
)

// Kinds returns all kinds, in the order in which they are listed to people.
func Kinds() []Kind { return []Kind{KindFirestore, KindSpanner, KindPubSub} }

// ParseKinds reads a list such as "firestore,spanner". Empty means none given and
// returns nil. An unknown name is an error that lists the known ones.
func ParseKinds(list string) ([]Kind, error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	var kinds []Kind
	for name := range strings.SplitSeq(list, ",") {
		kind := Kind(strings.TrimSpace(name))
		if err := kind.validate(); err != nil {
			return nil, err
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// Variable returns the environment variable from which Google's client libraries
// take the host of this emulator.
func (k Kind) Variable() string { return strings.ToUpper(string(k)) + "_EMULATOR_HOST" }

// title returns the name for people.
func (k Kind) title() string {
	switch k {
	case KindFirestore:
		return "Firestore"
	case KindSpanner:
		return "Spanner"
	case KindPubSub:
		return "Pub/Sub"
	}
	return string(k)
}

func (k Kind) validate() error {
	if !slices.Contains(Kinds(), k) {
		return fmt.Errorf("unknown emulator %q: choose from firestore, spanner, pubsub", string(k))
	}
	return nil
}
