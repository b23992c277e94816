//go:build unix

package leash

import (
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"regent/leadership/boottime"
)

// guard is the caller's handle of the guard process.
type guard struct {
	proc     *os.Process
	orders   *os.File
	told     int64         // number of orders
	answered atomic.Int64  // number of answers
	answer   chan struct{} // capacity 1: wakes the caller after an answer
	gone     chan struct{} // closed when the process has ended
}

// startGuard starts a guard and returns when it watches the group. A guard that has not answered by
// the limit is killed.
func startGuard(g *group, deadline, limit time.Duration) (*guard, error) {
	w, err := newGuard(g, deadline)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.answer:
		return w, nil
	case <-w.gone:
		err = errors.New("the guard died at once")
	case <-time.After(limit - boottime.Now()):
		err = errors.New("the guard does not answer")
	}
	w.kill()
	return nil, err
}

// newGuard starts the process in a session of its own, out of reach of signals to the caller's
// group or terminal, with an empty environment, and in the root directory, so that it keeps no
// directory busy. Its first order is in the pipe before it starts, so that it watches from its
// first moment.
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
	program, err := self()
	if err == nil {
		w.proc, err = os.StartProcess(program, []string{os.Args[0], roleGuard, g.mark}, &os.ProcAttr{
			Dir: "/", Env: []string{}, Files: []*os.File{in, out, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true},
		})
	}
	if err != nil {
		return nil, errors.Join(err, orders.Close(), answers.Close())
	}
	go w.listen(answers)
	return w, nil
}

// listen counts the answers until the process has ended.
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

func (w *guard) idle() bool { return w.answered.Load() == w.told }

// tell sends an order. It does not block as long as only an idle guard gets one. An error is
// ignored: the guard is about to be found gone.
func (w *guard) tell(group int, deadline time.Duration) {
	b, _ := binary.Append(nil, binary.NativeEndian, order{int64(os.Getpid()), int64(group), int64(deadline)})
	w.told++
	w.orders.Write(b)
}

// kill kills the guard process, so that it acts no more, and waits for its end.
func (w *guard) kill() {
	w.proc.Kill()
	<-w.gone
	w.orders.Close()
}
