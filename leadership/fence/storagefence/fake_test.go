package storagefence_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/googleapi"

	"regent/leadership/fence/storagefence"
)

// fake is a bucket. It implements storagefence.Objects.
type fake struct {
	faults func(request) fault // the fault of each request; may be nil

	mu       sync.Mutex
	requests int
	clock    storagefence.Generation
	objects  map[string]*object // by name
	landed   []object           // all uploads, in order
}

// request is a kind of call to the bucket.
type request string

const (
	stat   request = "stat"
	open   request = "open"
	upload request = "upload"
)

// object is an object, or the content of an upload.
type object struct {
	version storagefence.Version
	content string
}

type fault struct {
	refused  error         // replaces the service's reply
	lost     bool          // the request never arrives
	lostBack bool          // the request arrives, and its reply does not
	cutBack  bool          // the content is cut off in the middle; lostBack for other requests
	then     func()        // called when the request was served, before the reply is sent
	late     time.Duration // the request arrives that much later, when its caller has given up
}

func newFake() *fake { return &fake{objects: map[string]*object{}} }

var errConnection = errors.New("connection reset by peer")

// refuse returns a reply of a service that has done nothing.
func refuse(code int, header ...string) error {
	e := &googleapi.Error{Code: code, Message: http.StatusText(code), Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		e.Header.Set(header[i], header[i+1])
	}
	return e
}

// reply is a fault with such a reply.
func reply(code int, header ...string) fault { return fault{refused: refuse(code, header...)} }

// serve has the bucket serve a request, unless it has a fault.
func serve[T any](ctx context.Context, f *fake, r request, do func() (T, error)) (result T, err error) {
	f.mu.Lock()
	f.requests++
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return result, err
	}
	var what fault
	if f.faults != nil {
		what = f.faults(r)
	}
	arrive := func() (T, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return do()
	}
	switch {
	case what.refused != nil:
		return result, what.refused
	case what.lost:
		return result, errConnection
	case what.late > 0:
		go func() {
			time.Sleep(what.late)
			arrive()
		}()
		return result, errConnection
	}
	answer, err := arrive()
	if what.then != nil {
		what.then()
	}
	if content, ok := any(answer).(io.ReadCloser); ok && what.cutBack {
		return any(io.NopCloser(io.MultiReader(io.LimitReader(content, 10), broken{}))).(T), err
	}
	if what.lostBack || what.cutBack {
		return result, errConnection
	}
	return answer, err
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (f *fake) Read(ctx context.Context, name string) (storagefence.Version, error) {
	return serve(ctx, f, stat, func() (storagefence.Version, error) {
		o := f.objects[name]
		if o == nil {
			return storagefence.Version{}, refuse(http.StatusNotFound)
		}
		v := o.version
		v.Metadata = maps.Clone(v.Metadata)
		v.Open = func() (io.ReadCloser, error) { return f.open(ctx, name, v.Generation) }
		return v, nil
	})
}

func (f *fake) open(ctx context.Context, name string, g storagefence.Generation) (io.ReadCloser, error) {
	return serve(ctx, f, open, func() (io.ReadCloser, error) {
		o := f.objects[name]
		if o == nil || o.version.Generation != g {
			return nil, refuse(http.StatusNotFound)
		}
		return io.NopCloser(strings.NewReader(o.content)), nil
	})
}

func (f *fake) Write(ctx context.Context, name string, replaces storagefence.Version, metadata map[string]string, content []byte) (storagefence.Generation, error) {
	o := object{version: storagefence.Version{Metadata: maps.Clone(metadata)}, content: string(content)}
	return serve(ctx, f, upload, func() (storagefence.Generation, error) {
		var before storagefence.Version
		if there := f.objects[name]; there != nil {
			before = there.version
		}
		if before.Generation != replaces.Generation || before.Metageneration != replaces.Metageneration {
			return 0, refuse(http.StatusPreconditionFailed)
		}
		f.create(name, &o)
		f.landed = append(f.landed, o)
		return o.version.Generation, nil
	})
}

// create makes the next generation of an object. f.mu must be held.
func (f *fake) create(name string, o *object) {
	f.clock++
	o.version.Generation, o.version.Metageneration = f.clock, 1
	f.objects[name] = o
}

// put writes an object as another tool would.
func (f *fake) put(name, content string, metadata map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.create(name, &object{version: storagefence.Version{Metadata: metadata}, content: content})
}
