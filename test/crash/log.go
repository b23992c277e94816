package crash

import (
	"compress/flate"
	"encoding/gob"
	"errors"
	"os"
)

// kind is what a process did.
type kind uint8

// The kinds.
const (
	said    kind = iota + 1 // printed Data on its standard output
	wrote                   // wrote Data to the file, at Offset
	resized                 // gave the file the length Size
	synced                  // made the file, or a folder, durable; with Failed, tried to
	named                   // gave the file the name Name, its first or another
	renamed                 // gave the file called Name the name To
	unnamed                 // took the name Name away
	used                    // opened or read the file, or the folder
)

func (k kind) String() string {
	return [...]string{said: "said", wrote: "write", resized: "resize", synced: "sync", named: "name", renamed: "rename", unnamed: "remove", used: "use"}[k]
}

// entry is one thing that a process did to the files in a folder, or printed. An entry of a file
// stands where the call had returned, a printed one where the call began: so nothing counts as done
// too early, or as acknowledged too late.
type entry struct {
	Kind   kind
	File   uint64 // its inode
	Folder uint64 // with a name: the inode of its folder
	On     string // what it was called when the call began; "" for the folder
	Name   string // without the folder
	To     string
	Offset int64
	Size   int64
	Data   []byte
	Began  int  // how many entries there were when the call began
	Failed bool // with synced
}

// touches reports whether the entry changes files, or makes them durable.
func (e entry) touches() bool { return e.Kind != said && e.Kind != used }

// settledBy reports whether the entry is durable once the file or folder is.
func (e entry) settledBy(file uint64) bool {
	if e.Folder != 0 {
		return e.Folder == file
	}
	return e.File == file
}

// save writes a log, compressed: most of what a store writes are zeros.
func save(log []entry, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w, _ := flate.NewWriter(f, flate.BestSpeed) // the level is valid
	return errors.Join(gob.NewEncoder(w).Encode(log), w.Close(), f.Close())
}

func readLog(path string) (log []entry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return log, gob.NewDecoder(flate.NewReader(f)).Decode(&log)
}
