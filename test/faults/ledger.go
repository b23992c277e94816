package faults

import (
	"encoding/json"
	"net"
	"net/http"
	"sync"

	"regent/leadership/fence"
	"regent/test/checker"
	"regent/test/faults/record"
)

// ledger is where leaders write, each with its token.
type ledger struct {
	notes    *notes
	recorder *record.Recorder
	listener net.Listener
	server   http.Server
	serving  sync.WaitGroup

	mu    sync.Mutex // held during a write: the newest token before it is recorded with it
	guard fence.Guard
}

func newLedger(b *notes, d *record.Recorder) (*ledger, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &ledger{notes: b, recorder: d, listener: listener}
	l.server.Handler = l
	l.serving.Go(func() { l.server.Serve(listener) })
	return l, nil
}

func (l *ledger) close() {
	l.server.Close()
	l.serving.Wait()
}

// ServeHTTP admits or refuses a write.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var entry record.Ledger
	if err := json.NewDecoder(r.Body).Decode(&entry); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !l.admit(entry) {
		w.WriteHeader(http.StatusConflict)
	}
}

func (l *ledger) admit(entry record.Ledger) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	resource := string(entry.Election)
	write := checker.Write{Who: entry.Who, Election: entry.Election, Token: entry.Token, Newest: l.guard.Mark(resource).Token, At: l.recorder.Now()}
	err := l.guard.Do(resource, fence.Mark{Election: entry.Election, Token: entry.Token}, func() error { return nil })
	write.Admitted = err == nil
	l.notes.note(func(r *checker.Recording) { r.Writes = append(r.Writes, write) })
	return write.Admitted
}
