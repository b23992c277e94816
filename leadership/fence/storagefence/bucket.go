package storagefence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"regent/leadership"
	"regent/leadership/fence"
)

// Config is how a Bucket is reached. Bucket and Client are required.
type Config struct {
	Bucket string
	// Client adds the credentials, with the scope devstorage.read_write. Its Timeout, which should not be zero, bounds each request.
	Client *http.Client
	// Endpoint is where the JSON API is: https://storage.googleapis.com if it is empty. For an emulator it is its address, with http://.
	Endpoint string
	// ContentType is that of what is written: application/octet-stream if it is empty.
	ContentType string
	// MaxSize is how many bytes a content may have, when it is written and when it is read: 32 MiB if it is zero.
	MaxSize int64
	// Attempts is how often a call is tried before it gives up: 8 times if it is zero.
	Attempts int
}

// maxObject is how many bytes Cloud Storage lets an object have.
const maxObject = 5 << 40

// bucketName is what Cloud Storage lets a bucket be called, more or less: enough to stand in a path.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`)

func (c Config) validate() error {
	if !bucketName.MatchString(c.Bucket) {
		return fmt.Errorf("storagefence: %.64q is not the name of a bucket", c.Bucket)
	}
	if c.Client == nil {
		return errors.New("storagefence: Config.Client is required: it adds the credentials")
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("storagefence: the endpoint is an address like https://storage.googleapis.com, not %.64q", c.Endpoint)
	}
	if c.MaxSize < 0 || c.MaxSize > maxObject || c.Attempts < 0 {
		return errors.New("storagefence: MaxSize is at most 5 TiB, and neither it nor Attempts is negative")
	}
	return nil
}

// Bucket is a bucket whose objects are written by leaders. All methods may be called at the same time.
type Bucket struct{ c Config }

// New returns a bucket. It does not look whether it is there.
func New(c Config) (*Bucket, error) {
	c.Endpoint = strings.TrimSuffix(cmp.Or(c.Endpoint, "https://storage.googleapis.com"), "/")
	c.ContentType = cmp.Or(c.ContentType, "application/octet-stream")
	c.MaxSize = cmp.Or(c.MaxSize, 32<<20)
	c.Attempts = cmp.Or(c.Attempts, 8)
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Bucket{c}, nil
}

// Generation is one content of an object. Zero is that of an object that is not there.
type Generation int64

// Object is what Read found.
type Object struct {
	Content    []byte     // nil if the object is not there, or deleted
	Generation Generation // for Replace
	Mark       fence.Mark // who wrote it; zero if nobody did through this package
	Deleted    bool       // there is a tombstone in its place
}

// Write makes the content that of the object, if the leader that w names may write to it, whatever was there before. Errors:
//
//   - TokenStale: a later leader has written. Whoever is told this leads no more, and stops.
//   - InvalidArgument: w names no leader or one of another election than the object's, the name cannot be an object's, the content is too large.
//   - RecordCorrupt: the object's mark cannot be trusted.
//   - StoreUnavailable: nothing was written; it may be tried again. Where ctx was the cause, errors.Is also finds ctx's error.
//   - OutcomeUnknown: it may have been written, or be written yet, as long as nobody else writes. errors.Is also finds what it was met by last.
//   - *ReplyError: Cloud Storage refused, for want of a permission or of the bucket.
func (b *Bucket) Write(ctx context.Context, object string, w fence.Mark, content []byte) error {
	_, err := b.run(ctx, &write{verb: "write", object: object, mark: w, content: content})
	return err
}

// Replace is Write on the condition that the object is still at the generation that was read, 0 if it was not there, and returns its new one. It
// is how a content is changed that depends on what was there: read, change, Replace, and all of it again after RevisionMismatch, the
// error beside those of Write if somebody has written since.
func (b *Bucket) Replace(ctx context.Context, object string, read Generation, w fence.Mark, content []byte) (Generation, error) {
	return b.run(ctx, &write{verb: "replace", object: object, mark: w, content: content, only: &read})
}

// Delete is Write of a tombstone: the content is gone, and the mark stays.
func (b *Bucket) Delete(ctx context.Context, object string, w fence.Mark) error {
	_, err := b.run(ctx, &write{verb: "delete", object: object, mark: w, deleted: true})
	return err
}

// Read returns the object with its content, its generation and its mark, all of one moment. One that is not there is no error: it has the
// generation 0. Errors: InvalidArgument, if the name cannot be an object's or the content is too large; RecordCorrupt; StoreUnavailable;
// *ReplyError.
func (b *Bucket) Read(ctx context.Context, object string) (Object, error) {
	o, err := b.read(ctx, object)
	if err != nil {
		return Object{}, fmt.Errorf("storagefence: read %q: %w", object, coded(err, leadership.StoreUnavailable))
	}
	return o, nil
}

func (b *Bucket) read(ctx context.Context, object string) (Object, error) {
	if err := validateName(object); err != nil {
		return Object{}, err
	}
	for p := (pace{attempts: b.c.Attempts}); ; {
		o, err := b.look(ctx, object)
		if err == nil {
			return o, nil
		}
		if err := p.pause(ctx, err); err != nil {
			return Object{}, err
		}
	}
}

// look reads the object once. Its content is asked for on the condition of the generation that the mark was read at.
func (b *Bucket) look(ctx context.Context, object string) (Object, error) {
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
		o.Content, err = b.download(ctx, object, v.Generation)
	}
	return o, err
}

// validateName refuses what Cloud Storage refuses, and what a path would make something else of.
func validateName(object string) error {
	switch {
	case object == "" || len(object) > 1024:
		return invalid("object", "an object's name has from 1 to 1024 bytes, this one has %d", len(object))
	case object == "." || object == ".." || !utf8.ValidString(object) || strings.ContainsAny(object, "\r\n\x00"):
		return invalid("object", "an object's name is UTF-8 without line breaks, and neither %q nor %q: %.64q is not", ".", "..", object)
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: field, Detail: fmt.Sprintf(format, args...)}
}
