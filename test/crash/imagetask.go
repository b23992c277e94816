package crash

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// imageTask is a part of the images planned from a log, to be checked in a process of its own,
// because an image may crash the process that opens it.
type imageTask struct {
	Log      string // its path
	Seed     uint64
	Images   int
	Damaged  bool
	From, To int
	Dir      string // where images are made
}

// finding is the verdict on one image.
type finding struct {
	Image   int    `json:"image"`
	Begun   bool   `json:"begun,omitempty"` // there is no verdict yet
	Kind    string `json:"kind,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Wrong   string `json:"wrong,omitempty"`
}

func (d imageTask) plans(log []entry) []plan {
	if d.Damaged {
		return damages(log, d.Seed, d.Images)
	}
	return crashes(log, d.Seed, d.Images)
}

// folderName is the name of the store's folder everywhere.
const folderName = "regent"

// checkImages checks the images of the task, and prints a finding for each.
func checkImages(d imageTask) error {
	log, err := readLog(d.Log)
	if err != nil {
		return err
	}
	t, err := truthOf(log, nil)
	if err != nil {
		return err
	}
	disk := newDiskModel()
	plans := d.plans(log)
	for i := d.From; i < min(d.To, len(plans)); i++ {
		err := find(i, func() (kind, verdict string, err error) {
			p := plans[i]
			disk.advance(log, p.At)
			verdict, err = t.try(disk, log, p, filepath.Join(d.Dir, strconv.Itoa(i)), i%4 == 3)
			return p.kind(), verdict, about(p, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// find prints that the check of an image begins, and what it found.
func find(image int, check func() (kind, verdict string, err error)) error {
	say := json.NewEncoder(os.Stdout)
	f := finding{Image: image, Begun: true}
	if err := say.Encode(f); err != nil {
		return err
	}
	f.Begun = false
	var err error
	if f.Kind, f.Verdict, err = check(); err != nil {
		f.Wrong = err.Error()
	}
	return say.Encode(f)
}

func about(p plan, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	return nil
}

// try makes an image in the folder and checks it.
func (t *truth) try(d *diskModel, log []entry, p plan, dir string, otherBoot bool) (verdict string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, folderName)
	if err := d.make(log, p, path); err != nil {
		return "", err
	}
	return t.check(path, p, otherBoot)
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
