package storagefence_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/googleapi"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/fencetest"
	"regent/leadership/fence/storagefence"
)

func planner(token leadership.Token) fence.Mark { return fence.Mark{Election: "planner", Token: token} }

func (f *fake) bucket(t testing.TB, c storagefence.Config) *storagefence.Bucket {
	t.Helper()
	c.Objects = f
	b, err := storagefence.New(c)
	require.NoError(t, err)
	return b
}

func read(t *testing.T, b *storagefence.Bucket, name string) storagefence.Object {
	t.Helper()
	o, err := b.Read(t.Context(), name)
	require.NoError(t, err)
	return o
}

func TestABucketIsAFence(t *testing.T) {
	t.Parallel()
	fencetest.Run(t, func(testing.TB) fencetest.Place {
		b := newFake().bucket(t, storagefence.Config{})
		return fencetest.Place{
			Write: func(ctx context.Context, resource string, w fence.Mark, value int64) error {
				return b.Write(ctx, resource, w, strconv.AppendInt(nil, value, 10))
			},
			Read: func(_ testing.TB, resource string) (fence.Mark, int64) {
				o := read(t, b, resource)
				value, _ := strconv.ParseInt(string(o.Content), 10, 64)
				return o.Mark, value
			},
		}
	})
}

func TestATombstoneKeepsTheMark(t *testing.T) {
	t.Parallel()
	b := newFake().bucket(t, storagefence.Config{})
	require.NoError(t, b.Write(t.Context(), "state", planner(33), []byte("one")))
	require.NoError(t, b.Delete(t.Context(), "state", planner(34)))
	want := storagefence.Object{Generation: 2, Mark: planner(34), Deleted: true}
	if diff := cmp.Diff(want, read(t, b, "state")); diff != "" {
		t.Error(diff)
	}
	assert.ErrorIs(t, b.Write(t.Context(), "state", planner(33), nil), leadership.TokenStale)
	require.NoError(t, b.Write(t.Context(), "state", planner(34), nil))
	want = storagefence.Object{Generation: 3, Mark: planner(34), Content: []byte{}}
	assert.Empty(t, cmp.Diff(want, read(t, b, "state")), "an empty content is none that was deleted")
}

func TestReplaceChangesOnlyWhatWasRead(t *testing.T) {
	t.Parallel()
	b := newFake().bucket(t, storagefence.Config{})
	assert.Empty(t, cmp.Diff(storagefence.Object{}, read(t, b, "state")), "an object that is not there")
	first, err := b.Replace(t.Context(), "state", 0, planner(33), []byte("one"))
	require.NoError(t, err)
	for _, stale := range []storagefence.Generation{0, first + 1} {
		_, err := b.Replace(t.Context(), "state", stale, planner(33), []byte("lost"))
		assert.ErrorIs(t, err, leadership.RevisionMismatch, "generation %d", stale)
	}
	second, err := b.Replace(t.Context(), "state", first, planner(34), []byte("two"))
	if err != nil || second == first {
		t.Fatal(second, err)
	}
	if _, err := b.Replace(t.Context(), "state", first, planner(33), nil); !errors.Is(err, leadership.TokenStale) {
		t.Errorf("%v: a former leader must be told so, rather than to read again", err)
	}
	want := storagefence.Object{Content: []byte("two"), Generation: second, Mark: planner(34)}
	if diff := cmp.Diff(want, read(t, b, "state")); diff != "" {
		t.Error(diff)
	}
}

func TestObjectWithoutAMarkAdmitsAnyLeader(t *testing.T) {
	t.Parallel()
	const election, token = "regent-election", "regent-fencing-token"
	for name, c := range map[string]struct {
		metadata map[string]string
		want     error
	}{
		"nothing":          {nil, nil},
		"no token":         {map[string]string{election: "planner"}, leadership.RecordCorrupt},
		"no election":      {map[string]string{token: "3"}, leadership.RecordCorrupt},
		"not a number":     {map[string]string{election: "planner", token: "three"}, leadership.RecordCorrupt},
		"another spelling": {map[string]string{election: "planner", token: "03"}, leadership.RecordCorrupt},
		"too large":        {map[string]string{election: "planner", token: "9007199254740992"}, leadership.RecordCorrupt},
		"not a name":       {map[string]string{election: "Planner", token: "3"}, leadership.RecordCorrupt},
	} {
		f := newFake()
		f.put("state", "of others", c.metadata)
		b := f.bucket(t, storagefence.Config{})
		_, err := b.Read(t.Context(), "state")
		assert.ErrorIs(t, err, c.want, "%s: read", name)
		if err := b.Write(t.Context(), "state", planner(3), nil); !errors.Is(err, c.want) || (len(f.landed) == 0) != (c.want != nil) {
			t.Errorf("%s: write: %v after %d uploads, want %v", name, err, len(f.landed), c.want)
		}
	}
}

func TestNamesAreEscaped(t *testing.T) {
	t.Parallel()
	f := newFake()
	b := f.bucket(t, storagefence.Config{})
	for _, name := range []string{
		"state", "a/b/c", "/", "a//b", "../../etc", "a/../b", "./a", "what? #1 50%", "%2F", "a+b&c=d", "ü/日本.json", `"quoted"\`, "tab\t", strings.Repeat("n", 1024),
	} {
		if err := b.Write(t.Context(), name, planner(3), []byte(name)); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if o := read(t, b, name); string(o.Content) != name || f.objects[name] == nil {
			t.Errorf("%q became %q", name, o.Content)
		}
	}
	for _, name := range []string{"", ".", "..", "a\nb", "a\rb", "\xff", strings.Repeat("n", 1025)} {
		_, err := b.Read(t.Context(), name)
		if err2 := b.Write(t.Context(), name, planner(3), nil); !errors.Is(err, leadership.InvalidArgument) || !errors.Is(err2, leadership.InvalidArgument) {
			t.Errorf("%q: %v, %v; want INVALID_ARGUMENT", name, err, err2)
		}
	}
}

func TestContentSizeIsLimited(t *testing.T) {
	t.Parallel()
	f := newFake()
	b := f.bucket(t, storagefence.Config{MaxSize: 4})
	assert.NoError(t, b.Write(t.Context(), "state", planner(3), []byte("four")))
	if o := read(t, b, "state"); string(o.Content) != "four" {
		t.Errorf("%q", o.Content)
	}
	assert.ErrorIs(t, b.Write(t.Context(), "state", planner(3), []byte("fives")), leadership.InvalidArgument)
	f.put("large", "fives", nil)
	_, err := b.Read(t.Context(), "large")
	assert.ErrorIs(t, err, leadership.InvalidArgument)
}

func TestRefusalOfCloudStorageIsReturned(t *testing.T) {
	t.Parallel()
	for status, hint := range map[int]string{
		http.StatusBadRequest: "", http.StatusUnauthorized: "", http.StatusForbidden: "storage.objects.list", http.StatusRequestEntityTooLarge: "",
	} {
		for _, at := range []request{stat, upload} {
			f := newFake()
			f.faults = func(r request) fault {
				if r != at {
					return fault{}
				}
				return reply(status)
			}
			err := f.bucket(t, storagefence.Config{}).Write(t.Context(), "state", planner(3), nil)
			refusal, ok := errors.AsType[*googleapi.Error](err)
			if !ok || refusal.Code != status || !strings.Contains(err.Error(), hint) || coded(err) {
				t.Errorf("%s, %d: %v", at, status, err)
			}
		}
	}
	f := newFake()
	f.faults = func(request) fault {
		return fault{refused: &googleapi.Error{Code: http.StatusNotFound, Message: "The specified bucket does not exist."}}
	}
	nowhere := f.bucket(t, storagefence.Config{})
	if err := nowhere.Write(t.Context(), "state", planner(3), nil); err == nil || !strings.Contains(err.Error(), "bucket does not exist") {
		t.Error(err)
	}
	if _, err := nowhere.Read(t.Context(), "state"); err == nil || !strings.Contains(err.Error(), "bucket does not exist") {
		t.Error(err)
	}
}

func coded(err error) bool {
	return errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown)
}

func TestAnEndedContextWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFake()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.bucket(t, storagefence.Config{}).Write(ctx, "state", planner(3), nil)
	if !errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.Canceled) || errors.Is(err, leadership.OutcomeUnknown) || f.requests > 0 {
		t.Errorf("%v after %d requests, want STORE_UNAVAILABLE and context.Canceled after none", err, f.requests)
	}
}

func TestInvalidConfigIsRefused(t *testing.T) {
	t.Parallel()
	good := storagefence.Config{Objects: newFake()}
	_, err := storagefence.New(good)
	require.NoError(t, err)
	for name, change := range map[string]func(*storagefence.Config){
		"no objects":         func(c *storagefence.Config) { c.Objects = nil },
		"a negative size":    func(c *storagefence.Config) { c.MaxSize = -1 },
		"a negative attempt": func(c *storagefence.Config) { c.Attempts = -1 },
	} {
		c := good
		change(&c)
		if _, err := storagefence.New(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
