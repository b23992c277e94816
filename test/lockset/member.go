package lockset

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/fence"
	"regent/leadership/fence/firestorefence"
)

// Manner is how a leader checks that it still leads when it writes.
type Manner string

// The manners.
const (
	Trusting Manner = "trusting" // not at all
	Fenced   Manner = "fenced"   // its token is compared in the transaction of the write
)

// Config configures a member.
type Config struct {
	Manner    Manner
	Server    string // of Regent
	Project   string // of Firestore
	Elections int    // side by side, each with a set of its own
	Candidate leadership.CandidateID
	Number    int64         // of the member, 1 or more
	Lease     time.Duration // of each election
	Think     time.Duration // at most
}

// Update is an acknowledged element, which must stay in the set for ever. Element 0 means that the
// member has read the set, and thinks before it writes.
type Update struct {
	Election leadership.Election
	Member   int64 // its number
	Element  int64
}

// variable is the environment variable with a member's Config.
const variable = "REGENT_TEST_LOCKSET"

// Main runs a member, if the environment asks for one, until its standard input ends. It reports
// whether it did.
func Main() (is bool) {
	spec, is := os.LookupEnv(variable)
	if !is {
		return false
	}
	if err := run([]byte(spec)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func run(spec []byte) error {
	m := &member{out: json.NewEncoder(os.Stdout)}
	if err := json.Unmarshal(spec, &m.Config); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var err error
	if m.sets, err = firestore.NewClient(ctx, m.Project); err != nil {
		return err
	}
	m.agent, err = client.New(client.Config{
		Server: m.Server, Log: slog.New(slog.DiscardHandler), Candidate: client.Candidate{ID: m.Candidate, LeaseDuration: m.Lease},
	})
	if err != nil {
		return err
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var all sync.WaitGroup
	for i := range m.Elections {
		all.Go(func() { m.take(ctx, Election(i)) })
	}
	all.Wait()
	return nil
}

// Election returns the name of election i.
func Election(i int) leadership.Election { return leadership.Election(fmt.Sprintf("set-%d", i)) }

type member struct {
	Config
	agent *client.Client
	sets  *firestore.Client
	drawn atomic.Int64 // elements

	mu  sync.Mutex
	out *json.Encoder // guarded by mu
}

// take takes turns until ctx ends.
func (m *member) take(ctx context.Context, e leadership.Election) {
	for ctx.Err() == nil {
		_ = m.agent.Run(ctx, e, func(_ context.Context, l *client.Lease) error {
			return m.turn(context.WithoutCancel(ctx), l)
		})
	}
}

// turn reads the set, thinks, and writes the set with one more element.
func (m *member) turn(ctx context.Context, l *client.Lease) error {
	elements, err := m.read(ctx, l)
	if err != nil {
		return err
	}
	if err := m.tell(l, 0); err != nil {
		return err
	}
	time.Sleep(rand.N(m.Think))
	element := m.Number<<40 + m.drawn.Add(1)
	if err := m.write(ctx, l, append(elements, element)); err != nil {
		return err // written or not, it was not acknowledged
	}
	return m.tell(l, element)
}

func (m *member) tell(l *client.Lease, element int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.out.Encode(Update{l.Election(), m.Number, element})
}

// read reads the set. A fenced leader raises the mark first: from then on no earlier leader can
// write, so it reads every element.
func (m *member) read(ctx context.Context, l *client.Lease) (elements []int64, err error) {
	if m.Manner != Fenced {
		snap, err := Doc(m.sets, l.Election()).Get(ctx)
		return decode(snap, err)
	}
	err = m.sets.RunTransaction(ctx, m.fenced(l, func(_ context.Context, tx *firestore.Transaction) error {
		snap, err := tx.Get(Doc(m.sets, l.Election()))
		elements, err = decode(snap, err)
		return err
	}))
	return elements, err
}

func (m *member) write(ctx context.Context, l *client.Lease, elements []int64) error {
	doc, data := Doc(m.sets, l.Election()), map[string]any{field: elements}
	if m.Manner != Fenced {
		_, err := doc.Set(ctx, data)
		return err
	}
	return m.sets.RunTransaction(ctx, m.fenced(l, func(_ context.Context, tx *firestore.Transaction) error { return tx.Set(doc, data) }))
}

// fenced runs a leader's transaction, which only a leader may commit.
func (m *member) fenced(l *client.Lease, f func(context.Context, *firestore.Transaction) error) func(context.Context, *firestore.Transaction) error {
	return firestorefence.Fenced(firestorefence.Doc(m.sets, string(l.Election())), fence.Of(l), f)
}

const field = "elements"

// Doc returns the document of an election's set.
func Doc(c *firestore.Client, e leadership.Election) *firestore.DocumentRef {
	return c.Collection("sets").Doc(string(e))
}

// Read reads a set.
func Read(ctx context.Context, c *firestore.Client, e leadership.Election) ([]int64, error) {
	snap, err := Doc(c, e).Get(ctx)
	return decode(snap, err)
}

func decode(snap *firestore.DocumentSnapshot, err error) ([]int64, error) {
	if status.Code(err) == codes.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var data struct {
		Elements []int64 `firestore:"elements"`
	}
	err = snap.DataTo(&data)
	return data.Elements, err
}
