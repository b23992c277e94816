package load

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"regent/leadership"
)

// The messages about members have no id, and come between the events.
func TestAWatcherHearsTheEventAfterAMessageWithoutAnID(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // or the watcher reads on
		io.WriteString(w, "event: snapshot\nid: 1\ndata: {}\n\nevent: member\ndata: {}\n\nid: 2\ndata: {}\n\n")
	}))
	defer server.Close()
	var out strings.Builder
	m := &members{out: json.NewEncoder(&out), heard: map[leadership.Revision]*hearing{}, states: map[string]int{}}
	m.Config = Config{Kind: Watchers, Size: 1, Servers: []string{strings.TrimPrefix(server.URL, "http://")}, Election: "e"}
	m.watch(0, func() {}) // the error is the end of the stream
	if !strings.Contains(out.String(), `"revision":2`) {
		t.Errorf("revision 2 was not heard: %s", out.String())
	}
}
