package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
)

// task is what judges do, each a part of it.
type task interface {
	part() (name string, images int)
	between(from, to int) any
	// keep makes what is needed to look at an image again, and returns the error that names it.
	keep(image int, wrong string) error
}

func (d docket) part() (string, int) { return partJudge, d.Images }

func (d docket) between(from, to int) any {
	d.From, d.To = from, to
	return d
}

// keep makes the image anew, beside the log.
func (d docket) keep(image int, wrong string) error {
	log, err := load(d.Log)
	if err != nil {
		return err
	}
	p := d.plans(log)[image]
	disk := newDisk()
	disk.advance(log, p.At)
	path := filepath.Join(filepath.Dir(d.Log), fmt.Sprintf("%s-%d.db", p.kind(), image))
	if err := disk.make(log, p, path); err != nil {
		return errors.Join(errors.New(wrong), err)
	}
	return fmt.Errorf("%s: image %d, %s", path, image, wrong)
}

// court has a task done by as many judges as there are processors, and returns how many images of each kind had each verdict. If an
// image is not what it must be, the error says so, and names what was kept of it.
func court(ctx context.Context, t task) (map[string]int, error) {
	found := make(map[string]int)
	var mu sync.Mutex // guards found and wrong
	var wrong []error
	var wg sync.WaitGroup
	_, images := t.part()
	judges := runtime.GOMAXPROCS(0)
	for i := range judges {
		wg.Go(func() {
			b := &bench{task: t, next: images * i / judges, end: images * (i + 1) / judges, found: make(map[string]int)}
			b.run(ctx)
			mu.Lock()
			defer mu.Unlock()
			for k, n := range b.found {
				found[k] += n
			}
			wrong = append(wrong, b.wrong...)
		})
	}
	wg.Wait()
	return found, errors.Join(append(wrong, ctx.Err())...)
}

// enough is how many wrong images are kept by one judge, who then rises.
const enough = 3

var errEnough = errors.New("that is enough")

// bench is one judge after the other: one whom an image brings down is followed by another.
type bench struct {
	task
	next, end int
	under     int // the image that is judged at the moment; -1 for none
	found     map[string]int
	wrong     []error
}

func (b *bench) run(ctx context.Context) {
	part, _ := b.part()
	for b.next < b.end && len(b.wrong) < enough && ctx.Err() == nil {
		b.under = -1
		err := listen(ctx, part, b.between(b.next, b.end), b.hear)
		if err == nil || errors.Is(err, errEnough) {
			return
		}
		if b.under < 0 {
			b.wrong = append(b.wrong, err)
			return
		}
		if ctx.Err() == nil {
			b.wrong = append(b.wrong, b.keep(b.under, fmt.Sprintf("ends who opens it: %v", err)))
		}
		b.next = b.under + 1
	}
}

func (b *bench) hear(line []byte) error {
	var f finding
	if err := json.Unmarshal(line, &f); err != nil {
		return err
	}
	switch {
	case f.Begun:
		b.under = f.Image
		return nil
	case f.Wrong != "":
		if b.wrong = append(b.wrong, b.keep(f.Image, f.Wrong)); len(b.wrong) == enough {
			return errEnough
		}
	default:
		b.found[f.Kind+", "+f.Verdict]++
	}
	b.next, b.under = f.Image+1, -1
	return nil
}
