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

// task is what workers do, each a part of it.
type task interface {
	part() (name string, images int)
	between(from, to int) any
	// keep saves an image and its inputs for inspection, and returns an error that names the place.
	keep(image int, wrong string) error
}

func (d imageTask) part() (string, int) { return partImages, d.Images }

func (d imageTask) between(from, to int) any {
	d.From, d.To = from, to
	return d
}

// keep makes the image again, beside the log.
func (d imageTask) keep(image int, wrong string) error {
	log, err := readLog(d.Log)
	if err != nil {
		return err
	}
	p := d.plans(log)[image]
	disk := newDiskModel()
	disk.advance(log, p.At)
	path := filepath.Join(filepath.Dir(d.Log), fmt.Sprintf("%s-%d", p.kind(), image))
	if err := disk.make(log, p, path); err != nil {
		return errors.Join(errors.New(wrong), err)
	}
	return fmt.Errorf("%s: image %d, %s", path, image, wrong)
}

// checkAll divides a task among as many workers as there are processors, and returns how many
// images of each kind had each verdict. If an image is wrong, the error says so, and names what was
// kept of it.
func checkAll(ctx context.Context, t task) (map[string]int, error) {
	found := make(map[string]int)
	var mu sync.Mutex // guards found and wrong
	var wrong []error
	var wg sync.WaitGroup
	_, images := t.part()
	workers := runtime.GOMAXPROCS(0)
	for i := range workers {
		wg.Go(func() {
			b := &worker{task: t, next: images * i / workers, end: images * (i + 1) / workers, found: make(map[string]int)}
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

// enough is how many wrong images a worker keeps before it stops.
const enough = 3

var errEnough = errors.New("enough wrong images")

// worker runs processes that check images, one after the other: one that an image crashes is
// followed by another.
type worker struct {
	task
	next, end int
	under     int // the image being checked; -1 for none
	found     map[string]int
	wrong     []error
}

func (b *worker) run(ctx context.Context) {
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
			b.wrong = append(b.wrong, b.keep(b.under, fmt.Sprintf("opening it ends the process: %v", err)))
		}
		b.next = b.under + 1
	}
}

func (b *worker) hear(line []byte) error {
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
