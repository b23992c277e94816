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

// parts describes a kind in each source that provides it.
type parts struct {
	title     string // the usual name
	component string // of the Google Cloud SDK
	java      bool   // the component needs it
	image     string // the public one
	// question is the method of a cheap read that only an emulator of this kind answers. It is
	// about one resource, whose name is field 1 of the request.
	question, resource string
}

// sdkImage is the SDK's, which is published without versions. Spanner's own is pinned, because its
// emulator's behaviour changes between releases.
const sdkImage = "gcr.io/google.com/cloudsdktool/google-cloud-cli:emulators"

var partsOf = map[Kind]parts{
	KindFirestore: {
		"Firestore", "cloud-firestore-emulator", true, sdkImage,
		"/google.firestore.v1.Firestore/ListCollectionIds", "projects/regent-probe/databases/(default)/documents",
	},
	KindSpanner: {
		"Spanner", "cloud-spanner-emulator", false, "gcr.io/cloud-spanner-emulator/emulator:1.5.51",
		"/google.spanner.admin.instance.v1.InstanceAdmin/ListInstanceConfigs", "projects/regent-probe",
	},
	KindPubSub: {"Pub/Sub", "pubsub-emulator", true, sdkImage, "/google.pubsub.v1.Publisher/ListTopics", "projects/regent-probe"},
}

// Kinds returns all kinds, in the order in which they are listed.
func Kinds() []Kind { return []Kind{KindFirestore, KindSpanner, KindPubSub} }

// ParseKinds parses a list such as "firestore,spanner". For an empty text it returns nil. Start
// refuses unknown names.
func ParseKinds(list string) (kinds []Kind) {
	if strings.TrimSpace(list) == "" {
		return nil
	}
	for name := range strings.SplitSeq(list, ",") {
		if kind := Kind(strings.TrimSpace(name)); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Variable returns the environment variable that Google's client libraries read.
func (k Kind) Variable() string { return strings.ToUpper(string(k)) + "_EMULATOR_HOST" }

// Title returns the name that people know.
func (k Kind) Title() string { return partsOf[k].title }

// Image returns the public image that has the emulator.
func (k Kind) Image() string { return partsOf[k].image }

func (k Kind) validate() error {
	if !slices.Contains(Kinds(), k) {
		return fmt.Errorf("unknown emulator %q: choose from firestore, spanner, pubsub", string(k))
	}
	return nil
}
