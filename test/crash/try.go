package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// folderName is the name of the store's folder everywhere.
const folderName = "regent"

// recording is a log with its truth, and a folder where images are made.
type recording struct {
	log   []entry
	truth *truth
	dir   string
}

// newRecording derives the truth from the log; see truthOf.
func newRecording(log []entry, clean *truth, dir string) (recording, error) {
	t, err := truthOf(log, clean)
	return recording{log, t, dir}, err
}

// checks returns a check of the plans, which are in the order of their moments.
func (r recording) checks(plans []plan) check {
	disk := newDiskModel()
	return func(image int) (kind, verdict string, err error) {
		p := plans[image]
		disk.advance(r.log, p.At)
		verdict, err = r.try(disk, p, strconv.Itoa(image), image%4 == 3)
		return p.kind(), verdict, err
	}
}

// try makes an image in a folder of that name, checks it, and leaves it there if it is wrong.
func (r recording) try(d *diskModel, p plan, name string, otherBoot bool) (verdict string, err error) {
	dir := filepath.Join(r.dir, name)
	path := filepath.Join(dir, folderName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	if err := d.make(r.log, p, path); err != nil {
		return "", err
	}
	err = guarded(p, func() (err error) {
		verdict, err = r.truth.check(path, p, otherBoot)
		return err
	})
	if gone := os.RemoveAll(dir); err == nil {
		return verdict, gone
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return "", errors.Join(fmt.Errorf("%s: %s: %w", path, p, err), d.make(r.log, p, path)) // as it was before it was opened
}

// make puts the planned image at the path.
func (d *diskModel) make(log []entry, p plan, path string) error {
	var c cut
	if p.Cut != nil {
		c = *p.Cut
	}
	v := d.image(c)
	if p.Damage != nil {
		p.Damage.apply(v, log[:p.At])
	}
	return v.put(path)
}
