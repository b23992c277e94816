package storagefence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"regent/leadership"
	"regent/leadership/fence"
)

// Objects are the objects of a bucket. The package comment has them for
// cloud.google.com/go/storage. An error must wrap the *googleapi.Error of a reply that is not a
// success. After any other error the request, or its reply, counts as lost.
type Objects interface {
	// Read returns the newest version of the object. The error for one that does not exist wraps
	// a *googleapi.Error with Code 404.
	Read(ctx context.Context, name string) (Version, error)
	// Write replaces the object as a whole, if it still has the generation and the metageneration
	// of the version. Generation 0 means that it must not exist. It returns the new generation. It
	// sends one request and does not repeat it: see Config.Attempts.
	Write(ctx context.Context, name string, replaces Version, metadata map[string]string, content []byte) (Generation, error)
}

// Version is a version of an object. The zero Version means that the object does not exist.
type Version struct {
	Generation     Generation
	Metageneration int64
	Metadata       map[string]string
	// Open returns the content of this generation. The Bucket closes it.
	Open func() (io.ReadCloser, error)
}

// Config configures a Bucket. Objects is required.
type Config struct {
	Objects Objects
	// MaxSize is the largest content in bytes, for writes and reads; 0 for 32 MiB.
	MaxSize int64
	// Attempts is how often a call is tried; 0 for 8 times.
	Attempts int
}

// maxObject is Cloud Storage's largest object in bytes.
const maxObject = 5 << 40

func (c Config) validate() error {
	if c.Objects == nil {
		return errors.New("storagefence: Config.Objects is required")
	}
	if c.MaxSize < 0 || c.MaxSize > maxObject || c.Attempts < 0 {
		return errors.New("storagefence: MaxSize must be 0 to 5 TiB, and Attempts not negative")
	}
	return nil
}

// Bucket is a bucket whose objects are written by leaders. Its methods may be called concurrently.
type Bucket struct{ c Config }

// New returns a bucket. It does not check that the bucket exists.
func New(c Config) (*Bucket, error) {
	c.MaxSize = cmp.Or(c.MaxSize, 32<<20)
	c.Attempts = cmp.Or(c.Attempts, 8)
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Bucket{c}, nil
}

// Generation identifies one content of an object. Zero means that the object does not exist.
type Generation int64

// Object is the result of Read.
type Object struct {
	Content    []byte     // nil if the object does not exist or is deleted
	Generation Generation // for Replace
	Mark       fence.Mark // who wrote it; zero if it was not written by this package
	Deleted    bool       // a tombstone is in its place
}

// Write replaces the object's content, if the leader named by w may write to it. Errors:
//
//   - TokenStale: a later leader has written; see fence.Mark.Admit.
//   - InvalidArgument: w is not a valid mark or is of another election than the object's, the
//     object's name is invalid, or the content is too large.
//   - RecordCorrupt: the object's mark is invalid.
//   - StoreUnavailable: nothing was written; the caller may retry. If ctx was the cause, errors.Is
//     also finds ctx's error.
//   - OutcomeUnknown: it may have been written, or may still be written as long as no other writer
//     comes first. errors.Is also finds the last error.
//   - *googleapi.Error: Cloud Storage refused, for example because a permission or the bucket is
//     missing.
func (b *Bucket) Write(ctx context.Context, object string, w fence.Mark, content []byte) error {
	_, err := b.run(ctx, &write{verb: "write", object: object, mark: w, content: content})
	return err
}

// Replace is Write on the condition that the object is still at the generation that was read, 0 if
// it did not exist. It returns the new generation. Use it to change a content that depends on the
// old one: read, change, Replace, and repeat all of it after RevisionMismatch, the error (beside
// those of Write) if another write came in between.
func (b *Bucket) Replace(ctx context.Context, object string, read Generation, w fence.Mark, content []byte) (Generation, error) {
	return b.run(ctx, &write{verb: "replace", object: object, mark: w, content: content, only: &read})
}

// Delete is Write of a tombstone: the content is gone, and the mark stays.
func (b *Bucket) Delete(ctx context.Context, object string, w fence.Mark) error {
	_, err := b.run(ctx, &write{verb: "delete", object: object, mark: w, deleted: true})
	return err
}

// Read returns the object with its content, its generation and its mark, all of one moment. A
// missing object is no error: it has generation 0. Errors: InvalidArgument if the object's name is
// invalid or the content is too large; RecordCorrupt; StoreUnavailable; *googleapi.Error.
func (b *Bucket) Read(ctx context.Context, object string) (Object, error) {
	o, err := Object{}, validateName(object)
	if err == nil {
		o, err = retry(ctx, b.c.Attempts, func() (Object, error) { return b.readOnce(ctx, object) })
	}
	if err != nil {
		return Object{}, fmt.Errorf("storagefence: read %q: %w", object, coded(err, leadership.StoreUnavailable))
	}
	return o, nil
}

// readOnce reads the object once, its content and its mark of one generation.
func (b *Bucket) readOnce(ctx context.Context, object string) (Object, error) {
	v, err := b.stat(ctx, object)
	if err != nil {
		return Object{}, err
	}
	m, err := v.mark()
	if err != nil {
		return Object{}, err
	}
	o := Object{Generation: v.Generation, Mark: m, Deleted: v.deleted()}
	if v.Generation != 0 && !o.Deleted {
		o.Content, err = b.content(object, v)
	}
	return o, err
}

// stat returns the newest version of the object.
func (b *Bucket) stat(ctx context.Context, object string) (Version, error) {
	if err := ctx.Err(); err != nil {
		return Version{}, &lostError{err}
	}
	v, err := b.c.Objects.Read(ctx, object)
	if missing(err) {
		return Version{}, nil
	}
	return v, received(err)
}

// content reads the content of a version.
func (b *Bucket) content(object string, v Version) ([]byte, error) {
	r, err := v.Open()
	if missing(err) { // it existed a moment ago
		return nil, errOvertaken
	}
	if err != nil {
		return nil, received(err)
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, b.c.MaxSize+1))
	if err != nil {
		return nil, received(err)
	}
	if int64(len(content)) > b.c.MaxSize {
		return nil, invalid("content", "the content of %[2]q is larger than %[1]d bytes", b.c.MaxSize, object)
	}
	return content, nil
}

// validateName refuses names that Cloud Storage refuses, and names that would change the meaning of
// a path.
func validateName(object string) error {
	switch {
	case object == "" || len(object) > 1024:
		return invalid("object", "an object's name must have 1 to 1024 bytes, not %d", len(object))
	case object == "." || object == ".." || !utf8.ValidString(object) || strings.ContainsAny(object, "\r\n\x00"):
		return invalid("object", "an object's name must be UTF-8 without line breaks, and neither %q nor %q: not %.64q", ".", "..", object)
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: field, Detail: fmt.Sprintf(format, args...)}
}
