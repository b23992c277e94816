package storagefence

import (
	"context"
	"crypto/rand"
	"fmt"

	"regent/leadership"
	"regent/leadership/fence"
)

type write struct {
	verb    string
	object  string
	mark    fence.Mark
	id      string // by which it recognises its own upload
	content []byte
	deleted bool
	only    *Generation // the generation that it may replace; nil for any

	// the generation that an upload with a lost reply was to replace; nil if there is none
	sent *Generation
}

// run makes the write, and returns the new generation.
func (b *Bucket) run(ctx context.Context, w *write) (Generation, error) {
	w.id = rand.Text()
	g, err := Generation(0), b.validate(w)
	if err == nil {
		g, err = retry(ctx, b.c.Attempts, func() (Generation, error) { return b.attempt(ctx, w) })
	}
	switch {
	case err == nil:
		return g, nil
	case w.sent != nil:
		err = fmt.Errorf("%w: %w", leadership.OutcomeUnknown, err)
	default:
		err = coded(err, leadership.StoreUnavailable)
	}
	return 0, fmt.Errorf("storagefence: %s %q: %w", w.verb, w.object, err)
}

func (b *Bucket) attempt(ctx context.Context, w *write) (Generation, error) {
	found, err := b.stat(ctx, w.object)
	if err != nil {
		return 0, err
	}
	if found.id() == w.id { // the upload whose reply was lost was made
		return found.Generation, nil
	}
	if err := w.decide(found); err != nil {
		return 0, err
	}
	g, err := b.c.Objects.Write(ctx, w.object, found, w.metadata(), w.content)
	if err = received(err); err != nil && maybeDone(err) {
		w.sent = &found.Generation
	}
	return g, err
}

// decide returns why the version that was found must not be replaced.
func (w *write) decide(found Version) error {
	m, err := found.mark()
	if err != nil {
		return err
	}
	if _, err := m.Admit(w.mark); err != nil {
		return err
	}
	if w.sent != nil && found.Generation != *w.sent {
		return fmt.Errorf("generation %d is there instead of generation %d, which a write with a lost reply was to replace", found.Generation, *w.sent)
	}
	if w.only != nil && found.Generation != *w.only {
		return &leadership.Error{Code: leadership.RevisionMismatch, Detail: fmt.Sprintf(
			"the object is at generation %d, not %d any more; read it again", found.Generation, *w.only)}
	}
	return nil
}

func (b *Bucket) validate(w *write) error {
	if err := validateName(w.object); err != nil {
		return err
	}
	if n := int64(len(w.content)); n > b.c.MaxSize {
		return invalid("content", "a content may have %d bytes, this one has %d", b.c.MaxSize, n)
	}
	_, err := fence.Mark{}.Admit(w.mark)
	return err
}
