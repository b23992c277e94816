package process

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"regent/leadership"
)

// Lifespan is when a process of the command lifespan lived, as it has recorded it on
// CLOCK_BOOTTIME.
type Lifespan struct {
	Token       leadership.Token
	Parent, PID int
	First, Last time.Duration
}

// name returns the name of the file that a process writes.
func (l Lifespan) name() string { return fmt.Sprintf("%d.%d.%d", l.Token, l.Parent, l.PID) }

// Create makes the file in which a process records when it lived.
func (l Lifespan) Create(dir string) (*os.File, error) {
	return os.Create(filepath.Join(dir, l.name()))
}

// Write records that the process has lived from First to Last.
func (l Lifespan) Write(f *os.File) error {
	moments := binary.NativeEndian.AppendUint64(nil, uint64(l.First))
	_, err := f.WriteAt(binary.NativeEndian.AppendUint64(moments, uint64(l.Last)), 0)
	return err
}

// Lifespans reads what the processes of a folder have recorded, but for those that have recorded
// nothing yet.
func Lifespans(dir string) (all []Lifespan, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		var l Lifespan
		if n, _ := fmt.Sscanf(entry.Name(), "%d.%d.%d", &l.Token, &l.Parent, &l.PID); n != 3 {
			continue
		}
		moments, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil || len(moments) != 16 {
			continue
		}
		l.First = time.Duration(binary.NativeEndian.Uint64(moments))
		l.Last = time.Duration(binary.NativeEndian.Uint64(moments[8:]))
		all = append(all, l)
	}
	return all, err
}
