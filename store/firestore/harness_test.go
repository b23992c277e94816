package firestore_test

import (
	"context"
	"io"
	"testing"
	"time"

	apiv1 "cloud.google.com/go/firestore/apiv1"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/firestore"
	"regent/store/storetest"
)

func TestStore(t *testing.T) { storetest.RunStore(t, fresh) }

func TestProtocol(t *testing.T) { storetest.RunProtocol(t, freshNamed) }

func TestProtocolOverHTTP(t *testing.T) { storetest.RunProtocolOverHTTP(t, fresh) }

func TestJournal(t *testing.T) { storetest.RunJournal(t, fresh) }

// fresh is a backing on the default database of an unused project of the emulator.
func fresh(tb testing.TB) storetest.Backing {
	tb.Helper()
	return newProject(tb).backing()
}

// freshNamed is so, too, on a database with a name.
func freshNamed(tb testing.TB) storetest.Backing {
	tb.Helper()
	p := newProject(tb)
	p.name = "regent"
	return p.backing()
}

func (p project) backing() storetest.Backing {
	return storetest.Backing{
		Far:     true,
		Open:    func(tb testing.TB) service.Store { return p.open(tb) },
		OpenAs:  func(tb testing.TB, c rule.Codec) service.Store { return p.openAs(tb, c) },
		Advance: p.advance,
		Compact: p.compact,
		Damage:  p.damage,
	}
}

// project is a project of the emulator, and a foreign hand in it.
type project struct {
	host, id string
	name     string // of the database
	hand     *apiv1.Client
}

func newProject(tb testing.TB) project {
	tb.Helper()
	host := emulators.Firestore(tb)
	conn, err := grpc.NewClient("passthrough:///"+host, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(asOwner{}))
	require.NoError(tb, err)
	hand, err := apiv1.NewClient(tb.Context(), option.WithGRPCConn(conn))
	require.NoError(tb, err)
	tb.Cleanup(func() { hand.Close() })
	return project{host: host, id: emulators.Name(tb), name: "(default)", hand: hand}
}

// asOwner lets the hand pass the emulator's security rules.
type asOwner struct{}

func (asOwner) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer owner"}, nil
}

func (asOwner) RequireTransportSecurity() bool { return false }

// open returns one more handle, with a connection of its own.
func (p project) open(tb testing.TB, options ...grpc.DialOption) *firestore.Store {
	tb.Helper()
	return p.openAs(tb, rule.Codec{}, options...)
}

func (p project) openAs(tb testing.TB, c rule.Codec, options ...grpc.DialOption) *firestore.Store {
	tb.Helper()
	s, err := firestore.Open(tb.Context(), firestore.Config{
		Project: p.id, Database: p.name, Emulator: p.host, History: storetest.History, Codec: c, DialOptions: options,
	})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func (p project) database() string { return "projects/" + p.id + "/databases/" + p.name }

func (p project) lease(e leadership.Election) string {
	return p.database() + "/documents/leadership/" + string(e)
}

// values are the fields of a document.
type values = map[string]*firestorepb.Value

// write replaces a document or, with a mask, the fields that it names; those of them that are not
// in v are removed.
func (p project) write(tb testing.TB, name string, v values, mask ...string) {
	tb.Helper()
	w := &firestorepb.Write{Operation: &firestorepb.Write_Update{Update: &firestorepb.Document{Name: name, Fields: v}}}
	if len(mask) > 0 {
		w.UpdateMask = &firestorepb.DocumentMask{FieldPaths: mask}
	}
	p.commit(tb, w)
}

func (p project) remove(tb testing.TB, name string) {
	tb.Helper()
	p.commit(tb, &firestorepb.Write{Operation: &firestorepb.Write_Delete{Delete: name}})
}

func (p project) commit(tb testing.TB, writes ...*firestorepb.Write) {
	tb.Helper()
	if _, err := p.hand.Commit(tb.Context(), &firestorepb.CommitRequest{Database: p.database(), Writes: writes}); err != nil {
		tb.Fatalf("the foreign hand: %v", err)
	}
}

func (p project) read(tb testing.TB, name string) *firestorepb.Document {
	tb.Helper()
	doc, err := p.hand.GetDocument(tb.Context(), &firestorepb.GetDocumentRequest{Name: name})
	if err != nil {
		tb.Fatalf("the foreign hand: %v", err)
	}
	return doc
}

// advance makes all records older, and lets all events be due earlier.
func (p project) advance(tb testing.TB, d time.Duration) {
	tb.Helper()
	docs := p.hand.ListDocuments(tb.Context(), &firestorepb.ListDocumentsRequest{Parent: p.database() + "/documents", CollectionId: "leadership"})
	for {
		doc, err := docs.Next()
		if err == iterator.Done {
			break
		}
		require.NoError(tb, err)
		p.write(tb, doc.Name, older(doc, d), "renewedAt", "renewalDue", "acquiredAt", "endedAt", "endsBy", "retireAt", "standing")
	}
	events, _ := p.events(tb)
	for _, doc := range events {
		p.write(tb, doc.Name, values{"deleteAfter": timestamp(dueOf(tb, doc).Add(-d))}, "deleteAfter")
	}
}

// compact does what a TTL policy on the field deleteAfter of the collection group events does: it
// deletes each document in which that is a timestamp that has passed.
func (p project) compact(tb testing.TB) {
	tb.Helper()
	events, now := p.events(tb)
	for _, doc := range events {
		if dueOf(tb, doc).Before(now) {
			p.remove(tb, doc.Name)
		}
	}
}

func dueOf(tb testing.TB, doc *firestorepb.Document) time.Time {
	tb.Helper()
	due, ok := doc.Fields["deleteAfter"].GetValueType().(*firestorepb.Value_TimestampValue)
	if !ok {
		tb.Fatalf("deleteAfter of %s is %v, and no timestamp", doc.Name, doc.Fields["deleteAfter"])
	}
	return due.TimestampValue.AsTime()
}

// events reads all documents of the collection group events, and when that was.
func (p project) events(tb testing.TB) (docs []*firestorepb.Document, now time.Time) {
	tb.Helper()
	everywhere := []*firestorepb.StructuredQuery_CollectionSelector{{CollectionId: "events", AllDescendants: true}}
	stream, err := p.hand.RunQuery(tb.Context(), &firestorepb.RunQueryRequest{
		Parent:    p.database() + "/documents",
		QueryType: &firestorepb.RunQueryRequest_StructuredQuery{StructuredQuery: &firestorepb.StructuredQuery{From: everywhere}},
	})
	require.NoError(tb, err)
	for {
		reply, err := stream.Recv()
		if err == io.EOF {
			return docs, now
		}
		require.NoError(tb, err)
		now = reply.ReadTime.AsTime()
		if reply.Document != nil {
			docs = append(docs, reply.Document)
		}
	}
}

func older(doc *firestorepb.Document, d time.Duration) values {
	v := values{}
	for _, name := range []string{"renewedAt", "acquiredAt", "endedAt", "endsBy", "retireAt"} {
		if value, ok := doc.Fields[name]; ok {
			v[name] = value
		}
		if at := doc.Fields[name].GetTimestampValue(); at != nil {
			v[name] = timestamp(at.AsTime().Add(-d))
		}
	}
	v["standing"] = text(storetest.Earlier(doc.Fields["standing"].GetStringValue(), d))
	if _, ok := v["renewedAt"]; !ok && doc.Fields["leaderId"].GetStringValue() != "" {
		v["renewedAt"] = timestamp(doc.UpdateTime.AsTime().Add(-d))
	}
	return v
}

// damage spoils a record.
func (p project) damage(tb testing.TB, e leadership.Election, d storetest.Damage) {
	tb.Helper()
	name := p.lease(e)
	doc := p.read(tb, name)
	switch d {
	case storetest.MissingField:
		p.write(tb, name, nil, "fencingToken")
	case storetest.WrongType:
		p.write(tb, name, values{"fencingToken": text("1")}, "fencingToken")
	case storetest.UnknownSchema:
		p.write(tb, name, values{"schema": integer(99)}, "schema")
	case storetest.TokenBehind:
		p.write(tb, name, values{"fencingToken": integer(doc.Fields["fencingToken"].GetIntegerValue() - 1)}, "fencingToken")
	case storetest.RecordGone:
		p.remove(tb, name)
	case storetest.LeaderNoLease:
		p.write(tb, name, values{"leaderId": text("ghost"), "keyHash": bytesValue(nil), "leaseDurationMs": integer(0)},
			"leaderId", "keyHash", "leaseDurationMs", "renewedAt", "renewalDue")
	case storetest.FutureBeat:
		p.write(tb, name, values{"renewedAt": timestamp(doc.UpdateTime.AsTime().Add(24 * time.Hour))}, "renewedAt", "renewalDue")
	default:
		tb.Fatalf("damage %q is not known here", d)
	}
}

func integer(n int64) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_IntegerValue{IntegerValue: n}}
}

func text(s string) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_StringValue{StringValue: s}}
}

func bytesValue(b []byte) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_BytesValue{BytesValue: b}}
}

func timestamp(t time.Time) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_TimestampValue{TimestampValue: timestamppb.New(t)}}
}

// agent is a candidate with a key.
type agent struct {
	id  leadership.CandidateID
	key leadership.Key
}

func newAgent(id leadership.CandidateID) agent { return agent{id, leadership.NewKey()} }

func (a agent) ask(e leadership.Election) leadership.AcquireRequest {
	return leadership.AcquireRequest{Election: e, CandidateID: a.id, Key: &a.key}
}

func (a agent) lease(e leadership.Election, token leadership.Token) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: e, CandidateID: a.id, Key: a.key, Token: token}
}

func (a agent) renewal(e leadership.Election, token leadership.Token) rule.Renewal {
	return rule.Renewal{Election: e, CandidateID: a.id, KeyHash: a.key.Hash(), Token: token}
}
