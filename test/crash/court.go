package crash

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// docket is what one judge has to do: the images that are planned from a log, from one to another. It is done in a process of its
// own, for an image may bring the process down that opens it.
type docket struct {
	Log      string // its path
	Seed     uint64
	Images   int
	Damaged  bool
	From, To int
	Dir      string // where images are made
}

// finding is what a judge says of one image.
type finding struct {
	Image   int    `json:"image"`
	Begun   bool   `json:"begun,omitempty"` // there is no verdict yet
	Kind    string `json:"kind,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Wrong   string `json:"wrong,omitempty"`
}

func (d docket) plans(log []entry) []plan {
	if d.Damaged {
		return damages(log, d.Seed, d.Images)
	}
	return crashes(log, d.Seed, d.Images)
}

// fileName is that of the store's file in every folder.
const fileName = "regent.db"

// sit judges the images of a docket, and says a finding of each.
func sit(d docket) error {
	log, err := load(d.Log)
	if err != nil {
		return err
	}
	t, err := tell(log, nil)
	if err != nil {
		return err
	}
	disk := newDisk()
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

// find says that a judgement begins, and what was found.
func find(image int, judge func() (kind, verdict string, err error)) error {
	say := json.NewEncoder(os.Stdout)
	f := finding{Image: image, Begun: true}
	if err := say.Encode(f); err != nil {
		return err
	}
	f.Begun = false
	var err error
	if f.Kind, f.Verdict, err = judge(); err != nil {
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

// try makes an image in the folder and judges it.
func (t *truth) try(d *disk, log []entry, p plan, dir string, otherBoot bool) (verdict string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, fileName)
	if err := d.make(log, p, path); err != nil {
		return "", err
	}
	return t.judge(path, p, otherBoot)
}

// make puts the planned image at the path; nothing, if the file has no name in it.
func (d *disk) make(log []entry, p plan, path string) error {
	var c cut
	if p.Cut != nil {
		c = *p.Cut
	}
	v := d.image(c)
	id, ok := v.names[fileName]
	if !ok {
		return nil
	}
	file := v.file(id)
	if p.Damage != nil {
		p.Damage.inflict(file, id, log[:p.At])
	}
	return file.put(path)
}
