//go:build unix

package leash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"regent/leadership/boottime"
)

// guard is the process that watches, as the caller sees it.
type guard struct {
	proc     *os.Process
	orders   *os.File
	told     int64         // orders
	answered atomic.Int64  // of them
	answer   chan struct{} // has a wake-up after an answer
	gone     chan struct{} // closed when it has died
}

// hire starts a guard and returns when it watches the group. If it does not by the limit, it is dismissed.
func hire(g *group, deadline, limit time.Duration) (*guard, error) {
	w, err := newGuard(g, deadline)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(limit - boottime.Now())
	defer timer.Stop()
	select {
	case <-w.answer:
		return w, nil
	case <-w.gone:
		err = errors.New("the guard died at once")
	case <-timer.C:
		err = errors.New("the guard does not answer")
	}
	w.dismiss()
	return nil, err
}

// newGuard starts the process. Its first order is there before it is: from its first moment on it does what a guard does.
func newGuard(g *group, deadline time.Duration) (*guard, error) {
	in, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	answers, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, orders.Close())
	}
	defer out.Close()
	w := &guard{orders: orders, answer: make(chan struct{}, 1), gone: make(chan struct{})}
	w.tell(g.id, deadline)
	if w.proc, err = startGuard(g.mark, in, out); err != nil {
		return nil, errors.Join(err, orders.Close(), answers.Close())
	}
	go w.listen(answers)
	return w, nil
}

// startGuard starts the process in a session of its own, which no signal to the caller's group or terminal reaches, with nothing in its
// environment, and in no folder that somebody may want to remove.
func startGuard(mark string, in, out *os.File) (*os.Process, error) {
	program, err := self()
	if err != nil {
		return nil, err
	}
	return os.StartProcess(program, []string{os.Args[0], partGuard, mark}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{in, out, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// listen counts the answers until there will be none.
func (w *guard) listen(answers *os.File) {
	defer close(w.gone)
	defer answers.Close()
	buffer := make([]byte, 64)
	for {
		n, err := answers.Read(buffer)
		if err != nil {
			w.proc.Wait()
			return
		}
		w.answered.Add(int64(n))
		select {
		case w.answer <- struct{}{}:
		default:
		}
	}
}

// idle says whether the guard has answered all that it was told.
func (w *guard) idle() bool { return w.answered.Load() == w.told }

// tell gives an order. It does not block as long as only an idle guard is told anything. A guard that cannot be told any more is about to be gone.
func (w *guard) tell(group int, deadline time.Duration) {
	var b bytes.Buffer
	binary.Write(&b, binary.NativeEndian, order{int64(os.Getpid()), int64(group), int64(deadline)})
	w.told++
	w.orders.Write(b.Bytes())
}

// dismiss ends the guard without a word to it, so that it does nothing any more, and returns when it is gone.
func (w *guard) dismiss() {
	w.proc.Kill()
	<-w.gone
	w.orders.Close()
}
