package emulators

import (
	"fmt"
	"slices"
	"strings"
)

// Kind names one of the emulators.
type Kind string

const (
	KindFirestore Kind = "firestore"
	KindSpanner   Kind = "spanner"
	KindPubSub    Kind = "pubsub"
)

// Kinds returns all kinds, in the order in which they are listed.
func Kinds() []Kind { return []Kind{KindFirestore, KindSpanner, KindPubSub} }

// ParseKinds parses a list such as "firestore,spanner". For an empty text it returns nil. An error
// for an unknown name lists the known ones.
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

// Variable returns the environment variable that Google's client libraries read.
func (k Kind) Variable() string { return strings.ToUpper(string(k)) + "_EMULATOR_HOST" }

// Title returns the name that people know.
func (k Kind) Title() string {
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
