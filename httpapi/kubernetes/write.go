package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"regent/leadership"
)

// attempt is a write of a Lease.
type attempt struct {
	key
	election leadership.Election
	want     lease
	// patched reports whether the client sent a patch. Only then may it leave out the version.
	patched bool
	// again is the revision of the deletion, if a deleted Lease is created again.
	again leadership.Revision
	// manager is the client's fieldManager, if a patch does not name the holder; otherwise empty.
	manager string
}

// validate checks what a client sent, as an API server would.
func (a attempt) validate() error {
	m, s := a.want.Metadata, a.want.Spec
	switch {
	case m.Name != "" && m.Name != a.name:
		return refuse(http.StatusBadRequest, a.name, "the name of the object (%s) does not match the name on the URL (%s)", cut(m.Name), a.name)
	case m.Namespace != "" && m.Namespace != a.namespace:
		return refuse(http.StatusBadRequest, a.name, "the namespace of the object (%s) does not match the namespace on the URL (%s)", cut(m.Namespace), a.namespace)
	case len(m.OwnerReferences) > 0:
		return invalid(a.name, "metadata.ownerReferences", "a Lease has no owner here; leave it out")
	case len(m.Finalizers) > 0:
		return invalid(a.name, "metadata.finalizers", "a Lease has no finalizers here; leave them out")
	case s.Strategy != nil || s.PreferredHolder != nil:
		return invalid(a.name, "spec.strategy", "candidates elect their leader through this Lease themselves; leave out strategy and preferredHolder, or use Regent's own interface, where the service chooses")
	case s.LeaseTransitions != nil && *s.LeaseTransitions < 0:
		return invalid(a.name, "spec.leaseTransitions", "must be greater than or equal to 0")
	case s.LeaseDurationSeconds != nil && *s.LeaseDurationSeconds <= 0:
		return invalid(a.name, "spec.leaseDurationSeconds", "must be greater than 0")
	case a.holder() != "" && a.duration() > leadership.MaxLeaseDuration:
		return invalid(a.name, "spec.leaseDurationSeconds", "a lease has at most %d seconds", leadership.MaxLeaseDuration/time.Second)
	}
	if v := m.ResourceVersion; v != "" {
		if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < 0 || strconv.FormatInt(n, 10) != v {
			return invalid(a.name, "metadata.resourceVersion", "%q is not a version that this server gave", cut(v))
		}
	}
	return m.validate(a.name)
}

// holder returns the wanted holder; "" to release the lease.
func (a attempt) holder() string {
	if a.want.Spec.HolderIdentity == nil {
		return ""
	}
	return *a.want.Spec.HolderIdentity
}

// duration returns the wanted duration; 0 for the election's default.
func (a attempt) duration() time.Duration {
	if a.want.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	return time.Duration(*a.want.Spec.LeaseDurationSeconds) * time.Second
}

// extra returns the wanted extra of the leader's metadata.
func (a attempt) extra(id leadership.CandidateID) extra {
	x := extra{Labels: a.want.Metadata.Labels, Annotations: withoutOwn(a.want.Metadata.Annotations)}
	if string(id) != a.holder() {
		x.HolderIdentity = a.holder()
	}
	return x
}

// outdated reports whether the client names another version than the Lease has.
func (a attempt) outdated(now leadership.Lease) bool {
	v := a.want.Metadata.ResourceVersion
	return v != "" && v != version(written(now))
}

// checkUID refuses a write of another object.
func (a attempt) checkUID() error {
	if want := a.want.Metadata.UID; want != "" && want != a.uid() {
		return conflict(a.name, "the UID in the precondition is %s, and that of the Lease is %s", cut(want), a.uid())
	}
	return nil
}

// errOutdated returns the error of an API server for an outdated version.
func (a attempt) errOutdated() error {
	return conflict(a.name, "the object has been modified; please apply your changes to the latest version and try again")
}

func (d *Door) update(w http.ResponseWriter, r *http.Request, k key, e leadership.Election) error {
	want, err := d.readLease(w, r)
	if err != nil {
		return err
	}
	a := attempt{key: k, election: e, want: want}
	if err := a.validate(); err != nil {
		return err
	}
	if want.Metadata.ResourceVersion == "" || want.Metadata.ResourceVersion == "0" {
		return invalid(k.name, "metadata.resourceVersion", "must be specified for an update")
	}
	if err := a.checkUID(); err != nil {
		return err
	}
	return d.write(w, r, a)
}

// write makes an attempt at an existing Lease, and answers with the result.
func (d *Door) write(w http.ResponseWriter, r *http.Request, a attempt) error {
	ctx, cancel := context.WithTimeout(r.Context(), d.config.Timeout)
	defer cancel()
	reading, err := d.config.Service.Read(ctx, leadership.ReadRequest{Election: a.election})
	if err != nil {
		return err
	}
	l, err := d.decide(ctx, a, reading.Lease)
	if err != nil {
		return err
	}
	show(w, r, http.StatusOK, a.key, l)
	return nil
}

// decide makes the attempt. The read before only chooses the call; the store's transaction decides
// it.
func (d *Door) decide(ctx context.Context, a attempt, known leadership.Lease) (leadership.Lease, error) {
	if a.holder() == "" {
		return d.release(ctx, a)
	}
	id, err := candidate(a.name, a.holder())
	if err != nil {
		return leadership.Lease{}, err
	}
	holds := func() bool {
		return known.State == leadership.Held && known.LeaderID == id && identity(known) == a.holder()
	}
	if !holds() || a.outdated(known) {
		if known, err = d.read(ctx, a.election); err != nil {
			return leadership.Lease{}, err
		}
	}
	switch {
	case a.outdated(known) && (holds() || known.State == leadership.Vacant):
		return leadership.Lease{}, a.errOutdated()
	case a.foreign(known):
		return leadership.Lease{}, conflict(a.name, "%q holds the lease, and the patch of %q names no holder", identity(known), cut(a.manager))
	case holds():
		return d.renew(ctx, a, id, known)
	case known.State == leadership.Held:
		return leadership.Lease{}, conflict(a.name, "%q holds the lease for another %d ms by the server's clock", identity(known), known.ExpiresIn.Milliseconds())
	}
	if known.Config.Seats > 0 {
		return leadership.Lease{}, invalid(a.name, "metadata.name", "its election has seats, and each is a Lease of its own; use %s", known.Election.Seat(1)[len(a.election)-len(a.name):])
	}
	if err := a.refuseLong(known.Config.Term); err != nil {
		return leadership.Lease{}, err
	}
	return d.acquire(ctx, a, id)
}

// read reads the election from the store.
func (d *Door) read(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	reading, err := d.config.Service.Read(ctx, leadership.ReadRequest{Election: e, Strong: true})
	return reading.Lease, err
}

// changed returns when the last event of an election was written.
func (d *Door) changed(ctx context.Context, l leadership.Lease) (at time.Time, err error) {
	events, err := d.config.Service.Events(ctx, leadership.EventsRequest{Election: l.Election, After: l.Revision - 1, Limit: 1})
	if err == nil && len(events) > 0 {
		at = events[0].At
	}
	return at, err
}

// renew sends a heartbeat, with other labels and annotations or a longer duration if the client
// wants them.
func (d *Door) renew(ctx context.Context, a attempt, id leadership.CandidateID, known leadership.Lease) (leadership.Lease, error) {
	key, err := d.keyFor(ctx, a.election, a.holder())
	if err != nil {
		return leadership.Lease{}, err
	}
	was, want := extraOf(known.Metadata), a.extra(id)
	if _, err := want.metadata(a.name); err != nil {
		return leadership.Lease{}, err // nothing was written yet
	}
	same := maps.Equal(was.Labels, want.Labels) && maps.Equal(was.Annotations, want.Annotations)
	l, err := d.config.Service.Renew(ctx, leadership.LeaseRequest{Election: a.election, CandidateID: id, Key: key, Token: known.Token})
	if err == nil && (!same || a.duration() > known.LeaseDuration) {
		return d.acquire(ctx, a, id)
	}
	if err == nil && a.short(l) {
		return l, a.ending(l)
	}
	if err == nil && l.Metadata == "" {
		l.Metadata = known.Metadata
	}
	return l, a.notYours(err, known.Token)
}

// short reports whether the lease ends earlier than its holder will believe. The holder counts,
// from the answer, the duration that it asked for or, if it named none, the duration in the answer.
// If the lease is short, the answer must not say that the holder leads.
func (a attempt) short(l leadership.Lease) bool {
	return l.LeaseExpiration.Before(l.LastHeartbeat.Add(cmp.Or(a.duration(), l.LeaseDuration)))
}

// ending refuses a renewal after which the lease would be short.
func (a attempt) ending(l leadership.Lease) error {
	return conflict(a.name, "the lease ends in %d ms (%s), and a renewal does not change that; stop before that end", l.ExpiresIn.Milliseconds(), cmp.Or(string(l.EndsBecause), "its holder is on probation"))
}

// notYours refuses another caller's lease.
func (a attempt) notYours(err error, token leadership.Token) error {
	refused, ok := errors.AsType[*leadership.Error](err)
	if ok && (refused.Code == leadership.LeaseLost || refused.Reason == leadership.ReasonIncarnation) && refused.Lease != nil && refused.Lease.State == leadership.Held && refused.Lease.Token == token {
		return forbidden(a.name, "another caller holds this lease under that identity, and only it may renew or release it")
	}
	return err
}

func (d *Door) acquire(ctx context.Context, a attempt, id leadership.CandidateID) (leadership.Lease, error) {
	key, err := d.keyFor(ctx, a.election, a.holder())
	if err != nil {
		return leadership.Lease{}, err
	}
	metadata, err := a.extra(id).metadata(a.name)
	if err != nil {
		return leadership.Lease{}, err
	}
	g, err := d.config.Service.Acquire(ctx, leadership.AcquireRequest{Election: a.election, CandidateID: id, Key: &key, LeaseDuration: a.duration(), Metadata: metadata, Restore: a.again})
	if err != nil || !a.short(g.Lease) {
		return g.Lease, err
	}
	if g.AcquiredAt.Before(g.LastHeartbeat) {
		return g.Lease, a.ending(g.Lease)
	}
	if _, err := d.config.Service.Do(ctx, leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: a.election, CandidateID: id, Key: key, Token: g.Token}}); err != nil {
		return g.Lease, err
	}
	return g.Lease, a.tooLong(g.ExpiresIn)
}

// refuseLong refuses a lease that is longer than any term of the election.
func (a attempt) refuseLong(t leadership.TermPolicy) error {
	for _, most := range []time.Duration{t.MaxTerm, t.Approval.Every, t.StuckAfter} {
		if 0 < most && most < a.duration() {
			return a.tooLong(most)
		}
	}
	return nil
}

// tooLong refuses a lease that would end before its holder believes so.
func (a attempt) tooLong(most time.Duration) error {
	return invalid(a.name, "spec.leaseDurationSeconds", "the election's policy lets this holder lead for %d ms now, and a Lease that it asks for must not be longer", most.Milliseconds())
}

// processLabel is a label that distinguishes the processes of one caller: each process sets another
// value.
const processLabel = "regent/process"

// release ends the lease of the caller. Clients name no holder when they release, so the version
// identifies the term, and processLabel the process. client-go reads the Lease again before it
// releases it, even if another process of the caller holds it by now, and overwrites only its own
// labels. A patch does not contain such a read, and needs no label. A refusal is 403, because on
// 409 client-go reads the Lease and repeats the release at once. 409 is only for a process whose
// own abandoned renewal was written between its read and its release.
func (d *Door) release(ctx context.Context, a attempt) (leadership.Lease, error) {
	known, err := d.read(ctx, a.election)
	switch {
	case err != nil:
		return known, err
	case known.State != leadership.Held && a.outdated(known):
		return known, a.errOutdated()
	case known.State != leadership.Held:
		return known, nil
	}
	holder := identity(known)
	key, err := d.keyFor(ctx, a.election, holder)
	if err != nil {
		return leadership.Lease{}, err
	}
	process := a.want.Metadata.Labels[processLabel]
	switch {
	case a.foreign(known):
		return leadership.Lease{}, forbidden(a.name, "%q holds the lease, and %q releases its own alone", holder, cut(a.manager))
	case process == "" && !a.patched:
		return leadership.Lease{}, forbidden(a.name, "a release does not say which process holds the lease, so it may be that of another one; give each process a label %q of its own, or let the lease of %q run out", processLabel, holder)
	case process != extraOf(known.Metadata).Labels[processLabel]:
		return leadership.Lease{}, forbidden(a.name, "%q holds the lease with another label %q, so this is the release of another process", holder, processLabel)
	case a.outdated(known):
		return leadership.Lease{}, a.errOutdated()
	}
	lease := leadership.LeaseRequest{Election: a.election, CandidateID: known.LeaderID, Key: key, Token: known.Token}
	l, err := d.config.Service.Do(ctx, leadership.Release{LeaseRequest: lease, IfHeartbeat: known.LastHeartbeat})
	switch {
	case errors.Is(err, leadership.LeaseLost):
		return l, forbidden(a.name, "another caller holds the lease, and only it may release it")
	case errors.Is(err, leadership.RevisionMismatch):
		return l, a.errOutdated()
	}
	return l, err
}

func (d *Door) create(w http.ResponseWriter, r *http.Request, namespace string) error {
	if err := refuseDryRun(r); err != nil {
		return err
	}
	want, err := d.readLease(w, r)
	if err != nil {
		return err
	}
	k := key{namespace, want.Metadata.Name}
	if k.name == "" {
		return invalid("", "metadata.name", "a Lease needs a name here; there is no generateName")
	}
	e, err := k.election()
	if err != nil {
		return err
	}
	a := attempt{key: k, election: e, want: want}
	if err := a.validate(); err != nil {
		return err
	}
	if want.Metadata.ResourceVersion != "" {
		return refuse(http.StatusBadRequest, k.name, "resourceVersion should not be set on objects to be created")
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.config.Timeout)
	defer cancel()
	l, err := d.begin(ctx, a)
	if err != nil {
		return refusalOf(k.name, a.exists(err)) // the path of a creation does not name the Lease
	}
	if m := want.Metadata; a.holder() == "" && len(m.Labels)+len(withoutOwn(m.Annotations)) > 0 {
		warn(w, "labels and annotations belong to the leader: without a holder, they are not kept")
	}
	show(w, r, http.StatusCreated, k, l)
	return nil
}

// exists returns the error of a creation whose Lease exists already.
func (a attempt) exists(err error) error {
	if refused, ok := errors.AsType[*leadership.Error](err); ok && refused.Code == leadership.LeaseHeld {
		return a.alreadyExists("%s", refused.Detail)
	}
	return err
}

func (a attempt) alreadyExists(format string, args ...any) error {
	r := refuse(http.StatusConflict, a.name, "leases.coordination.k8s.io %q already exists: %s", a.name, fmt.Sprintf(format, args...))
	r.reason = "AlreadyExists"
	return r
}

// begin creates the election of a Lease. It restores a deleted one, which goes on with the next
// token, if the caller may configure it.
func (d *Door) begin(ctx context.Context, a attempt) (leadership.Lease, error) {
	reading, err := d.config.Service.Read(ctx, leadership.ReadRequest{Election: a.election, Strong: true})
	if err == nil {
		return reading.Lease, a.alreadyExists("update it")
	}
	if refused, ok := errors.AsType[*leadership.Error](err); !ok || refused.Code != leadership.NotFound {
		return leadership.Lease{}, err
	}
	if a.holder() == "" {
		c := leadership.Configure{Election: a.election}
		c.Config.LeaseDuration = a.duration()
		return d.config.Service.Do(ctx, c)
	}
	id, err := candidate(a.name, a.holder())
	if err != nil {
		return leadership.Lease{}, err
	}
	l, err := d.acquire(ctx, a, id)
	if refused, ok := errors.AsType[*leadership.Error](err); ok && refused.Code == leadership.ElectionDeleted && refused.Lease != nil { // it has the revision of the deletion
		a.again = refused.Lease.Revision
		return d.acquire(ctx, a, id)
	}
	return l, err
}

func (d *Door) patch(w http.ResponseWriter, r *http.Request, k key, e leadership.Election) error {
	contentType, body, err := read(w, r, typeMerge, typeStrategic)
	if err != nil {
		return err
	}
	var change map[string]any
	if err := decode(body, &change); err != nil || change == nil {
		return refuse(http.StatusBadRequest, k.name, "the patch is not a JSON object: %v", cmp.Or(err, errors.New("it is null")))
	}
	if name := directive(change); name != "" && contentType == typeStrategic {
		return refuse(http.StatusBadRequest, k.name, "the patch has the directive %s, and a strategic merge patch has none here: send the fields as they shall be, and null for those that shall go", cut(name))
	}
	if err := d.checkFields(w, r, body); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.config.Timeout)
	defer cancel()
	reading, err := d.config.Service.Read(ctx, leadership.ReadRequest{Election: e, Strong: true})
	if err != nil {
		return err
	}
	var now any
	if err := decode(text(newLease(k, reading.Lease, "")), &now); err != nil {
		return err
	}
	a := attempt{key: k, election: e, patched: true}
	err = decode(text(merge(now, change)), &a.want)
	if err := a.want.checkRead(err); err != nil {
		return err
	}
	fields, changed := change["spec"].(map[string]any)
	if fields["leaseDurationSeconds"] == nil { // the duration was read from the Lease, is rounded, and is no request
		a.want.Spec.LeaseDurationSeconds = nil
	}
	if err := a.validate(); err != nil {
		return err
	}
	described, _ := change["metadata"].(map[string]any)
	if (described["labels"] != nil || described["annotations"] != nil) && a.holder() == "" && reading.State == leadership.Vacant {
		return invalid(k.name, "metadata", "labels and annotations belong to the leader, and the lease is vacant; send them with a holder")
	}
	if err := a.checkUID(); err != nil {
		return err
	}
	holder, _ := fields["holderIdentity"].(string)
	if manager := r.URL.Query().Get("fieldManager"); changed && holder == "" && !strings.HasPrefix(manager, "kubectl") {
		a.manager = manager
	}
	l, err := d.decide(ctx, a, reading.Lease)
	if err != nil {
		return err
	}
	show(w, r, http.StatusOK, k, l)
	return nil
}

// foreign reports whether a client that names itself is not the holder of the lease.
func (a attempt) foreign(now leadership.Lease) bool {
	return a.manager != "" && now.State == leadership.Held && a.manager != identity(now)
}

// remove serves DELETE. The election leaves a tombstone, so its fencing token never starts again.
func (d *Door) remove(w http.ResponseWriter, r *http.Request, k key, e leadership.Election) error {
	options, err := readOptions(w, r)
	if err != nil {
		return err
	}
	if len(options.DryRun) > 0 {
		return refuse(http.StatusBadRequest, k.name, "there is no dry run here; send the request without dryRun")
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.config.Timeout)
	defer cancel()
	reading, err := d.config.Service.Read(ctx, leadership.ReadRequest{Election: e, Strong: true})
	if err != nil {
		return err
	}
	a := attempt{key: k, election: e, want: lease{Metadata: meta{UID: options.Preconditions.UID, ResourceVersion: options.Preconditions.ResourceVersion}}}
	if err := cmp.Or(a.validate(), a.checkUID()); err != nil {
		return err
	}
	if a.outdated(reading.Lease) {
		return conflict(k.name, "the precondition names version %s, and the Lease has version %s", a.want.Metadata.ResourceVersion, version(written(reading.Lease)))
	}
	c := leadership.Delete{Election: e, Force: true}
	if a.want.Metadata.ResourceVersion != "" {
		c.IfRevision = reading.Revision
	}
	if _, err := d.config.Service.Do(ctx, c); err != nil {
		return err
	}
	reply(w, http.StatusOK, status{Kind: "Status", APIVersion: "v1", Status: "Success", Details: &details{Name: k.name, Group: group, Kind: "leases", UID: k.uid()}, Code: http.StatusOK})
	return nil
}
