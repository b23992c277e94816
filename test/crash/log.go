package crash

import (
	"bytes"
	"fmt"
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

// save writes a log for a reader, a line for each entry: of data that are no line of text, only how
// much there is.
func save(log []entry, path string) error {
	var text bytes.Buffer
	for i, e := range log {
		fmt.Fprintf(&text, "%d (%d): %v %s %s, offset %d, size %d, %d bytes, failed %t", i, e.Began, e.Kind, e.On, e.To, e.Offset, e.Size, len(e.Data), e.Failed)
		if e.Kind == said {
			fmt.Fprintf(&text, ": %s", bytes.TrimSpace(e.Data))
		}
		text.WriteByte('\n')
	}
	return os.WriteFile(path, text.Bytes(), 0o600)
}
