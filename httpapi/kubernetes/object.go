package kubernetes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"regent/leadership"
)

const (
	group      = "coordination.k8s.io"
	apiVersion = group + "/v1"

	// tokenAnnotation has the fencing token of the leader or, if there is none, of the last leader.
	tokenAnnotation = ownAnnotations + "fencing-token"
	// ownAnnotations begins the annotations that the server sets. It ignores those of a client.
	ownAnnotations = "regent/"
	// initialEventsEnd marks the bookmark after which a watch has sent the whole initial state.
	initialEventsEnd = "k8s.io/initial-events-end"
	// maxTransitions is the most that a Lease shows: clients read an int32, and add one to it.
	maxTransitions = math.MaxInt32 - 1
)

// lease is a Lease of coordination.k8s.io/v1.
type lease struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   meta   `json:"metadata"`
	Spec       spec   `json:"spec"`
}

type meta struct {
	Name            string            `json:"name,omitempty"`
	GenerateName    string            `json:"generateName,omitempty"`
	Namespace       string            `json:"namespace,omitempty"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Created         string            `json:"creationTimestamp,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	// Only the presence of these is checked.
	OwnerReferences []struct{} `json:"ownerReferences,omitempty"`
	Finalizers      []string   `json:"finalizers,omitempty"`
}

func (m meta) validate(name string) error {
	for label, value := range m.Labels {
		if !qualifiedForm.MatchString(label) {
			return invalid(name, "metadata.labels", "%q is not the name of a label: it has up to 63 of A-Z, a-z, 0-9, '-', '_' and '.', with a prefix like example.com/ or without", cut(label))
		}
		if !valueForm.MatchString(value) {
			return invalid(name, "metadata.labels", "%q is not the value of a label: it has up to 63 of A-Z, a-z, 0-9, '-', '_' and '.'", cut(value))
		}
	}
	for annotation := range m.Annotations {
		if !qualifiedForm.MatchString(annotation) {
			return invalid(name, "metadata.annotations", "%q is not the name of an annotation: it has up to 63 of A-Z, a-z, 0-9, '-', '_' and '.', with a prefix like example.com/ or without", cut(annotation))
		}
	}
	return nil
}

type spec struct {
	HolderIdentity       *string    `json:"holderIdentity,omitempty"`
	LeaseDurationSeconds *int32     `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          *microTime `json:"acquireTime,omitempty"`
	RenewTime            *microTime `json:"renewTime,omitempty"`
	LeaseTransitions     *int64     `json:"leaseTransitions,omitempty"`
	Strategy             *string    `json:"strategy,omitempty"`
	PreferredHolder      *string    `json:"preferredHolder,omitempty"`
}

// microTime is an instant with exactly six digits after the second: clients refuse any others.
type microTime struct{ time.Time }

func (t microTime) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000000Z"`)), nil
}

// key is the name of a Lease.
type key struct{ namespace, name string }

// prefix begins the elections that are Leases.
const prefix = "k8s."

var (
	labelForm     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	valueForm     = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
	qualifiedForm = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	subdomainForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// election returns the election of a Lease. A namespace has no dot, so no two Leases have one
// election.
func (k key) election() (leadership.Election, error) {
	switch e := leadership.Election(prefix + k.namespace + "." + k.name); {
	case !labelForm.MatchString(k.namespace):
		return "", invalid(k.name, "metadata.namespace", "%q is not the name of a namespace: it has from 1 to 63 of a-z, 0-9 and '-', and begins and ends with a letter or digit", cut(k.namespace))
	case !subdomainForm.MatchString(k.name):
		return "", invalid(k.name, "metadata.name", "%q is not the name of a Lease: it is made of a-z, 0-9, '-' and '.', and begins and ends with a letter or digit", cut(k.name))
	case e.Validate() != nil:
		return "", invalid(k.name, "metadata.name", "namespace and name have %d characters together, and here they have at most %d, because they name the election %s...", len(k.namespace)+len(k.name), leadership.MaxElectionLength-len(prefix)-1, prefix)
	default:
		return e, nil
	}
}

// keyOf returns the Lease of an election. ok is false if it is none.
func keyOf(e leadership.Election) (k key, ok bool) {
	rest, ok := strings.CutPrefix(string(e), prefix)
	if !ok {
		return k, false
	}
	k.namespace, k.name, ok = strings.Cut(rest, ".")
	_, err := k.election()
	return k, ok && err == nil
}

func cut(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// extra is the part of a Lease that is kept in the leader's metadata.
type extra struct {
	HolderIdentity string            `json:"holderIdentity,omitempty"` // if it differs from the candidate's id
	Labels         map[string]string `json:"labels,omitempty"`
	Annotations    map[string]string `json:"annotations,omitempty"`
}

type published struct {
	Kubernetes *extra `json:"kubernetes,omitempty"`
}

// extraOf reads the leader's metadata, which may have been written through another door.
func extraOf(m leadership.Metadata) extra {
	var p published
	if m == "" || json.Unmarshal([]byte(m), &p) != nil || p.Kubernetes == nil {
		return extra{}
	}
	return *p.Kubernetes
}

// metadata returns the leader's metadata: always an object, so that it replaces earlier metadata.
func (x extra) metadata(name string) ([]byte, error) {
	var p published
	if x.HolderIdentity != "" || len(x.Labels)+len(x.Annotations) > 0 {
		p.Kubernetes = &x
	}
	text, err := json.Marshal(p)
	if err == nil {
		_, err = leadership.ParseMetadata(text)
	}
	if err != nil {
		return nil, invalid(name, "metadata.annotations", "labels, annotations and a long holder identity are kept as the leader's metadata, and %v", err)
	}
	return text, nil
}

// identity returns the leader's holder identity, as its client sent it.
func identity(l leadership.Lease) string {
	if x := extraOf(l.Metadata); x.HolderIdentity != "" {
		if id, err := candidate("", x.HolderIdentity); err == nil && id == l.LeaderID {
			return x.HolderIdentity
		}
	}
	return string(l.LeaderID)
}

// maxIdentity is how many bytes a holder's identity may have.
const maxIdentity = 1024

// candidate returns the candidate of a holder's identity: the identity itself or, if that is no
// valid id, its valid characters and a hash.
func candidate(name, identity string) (leadership.CandidateID, error) {
	if id := leadership.CandidateID(identity); id.Validate() == nil {
		return id, nil
	}
	if len(identity) > maxIdentity {
		return "", invalid(name, "spec.holderIdentity", "it has %d bytes, and at most %d are allowed", len(identity), maxIdentity)
	}
	sum := sha256.Sum256([]byte(identity))
	known := strings.Map(func(r rune) rune {
		if leadership.CandidateID(r).Validate() != nil {
			return '-'
		}
		return r
	}, identity)
	return leadership.CandidateID(known[:min(len(known), 90)] + "@" + hex.EncodeToString(sum[:12])), nil
}

// written returns when the election was last written in a way that changes its Lease.
func written(l leadership.Lease) time.Time {
	if l.State == leadership.Held {
		return l.LastHeartbeat
	}
	return l.VacantSince
}

// version returns the resource version of an instant of the store's clock.
func version(at time.Time) string { return strconv.FormatInt(max(at.UnixMicro(), 1), 10) }

// newLease returns an election as a Lease. It changes only when the election is written. Its
// duration is rounded down, so that no client counts on more.
func newLease(k key, l leadership.Lease, resourceVersion string) lease {
	x := extraOf(l.Metadata)
	m := meta{
		Name: k.name, Namespace: k.namespace, ResourceVersion: resourceVersion, Labels: x.Labels,
		UID:         k.uid(),
		Annotations: map[string]string{tokenAnnotation: strconv.FormatInt(int64(l.Token), 10)},
	}
	maps.Copy(m.Annotations, withoutOwn(x.Annotations))
	if l.CreatedAt != 0 {
		m.Created = time.Unix(l.CreatedAt, 0).UTC().Format(time.RFC3339)
	}
	holder, seconds, transitions := "", int32(l.LeaseDuration/time.Second), min(max(int64(l.Token)-1, 0), maxTransitions)
	s := spec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, LeaseTransitions: &transitions}
	if l.State == leadership.Held {
		holder = identity(l)
		s.AcquireTime, s.RenewTime = &microTime{l.AcquiredAt}, &microTime{l.LastHeartbeat}
	}
	return lease{Kind: "Lease", APIVersion: apiVersion, Metadata: m, Spec: s}
}

// uid returns the uid of a Lease. It depends on the name alone, because an election that is deleted
// and created again is the same election.
func (k key) uid() string {
	b := sha256.Sum256([]byte(prefix + k.namespace + "." + k.name))
	// a UUID of version 8, whose bytes may have any meaning
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func withoutOwn(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	maps.DeleteFunc(kept, func(name, _ string) bool { return strings.HasPrefix(name, ownAnnotations) })
	return kept
}

func text(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // what this package writes always has a JSON form
	}
	return b.Bytes()
}
