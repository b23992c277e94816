package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/wire"
)

// upload sends the beginning of an acquire to a server with that read timeout, and returns the
// answer.
func upload(t *testing.T, readTimeout time.Duration, length int, begin string) (*http.Response, wire.Problem) {
	t.Helper()
	server := httptest.NewUnstartedServer(newFixture(t).handler)
	server.Config = httpapi.Server(server.Config.Handler, nil)
	server.Config.ReadTimeout = readTimeout
	server.Start()
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /v1/elections/planner:acquire HTTP/1.1\r\nHost: regent\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, begin)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, answer{response.StatusCode, response.Header, body}.problem(t)
}

func TestAnUploadThatStallsIsToldToComeAgain(t *testing.T) {
	t.Parallel()
	response, p := upload(t, 2*time.Second, 50, `{"cand`)
	if response.StatusCode != http.StatusRequestTimeout || p.Code != wire.RequestTimeout || !response.Close {
		t.Errorf("status %d, code %s, close %t; want 408, REQUEST_TIMEOUT and the connection closed", response.StatusCode, p.Code, response.Close)
	}
}

func TestATooLargeUploadIsRefusedBeforeItIsRead(t *testing.T) {
	t.Parallel()
	response, p := upload(t, time.Hour, wire.MaxBody+1, "")
	if response.StatusCode != http.StatusRequestEntityTooLarge || p.Code != wire.PayloadTooLarge || !response.Close {
		t.Errorf("status %d, code %s, close %t; want 413, PAYLOAD_TOO_LARGE and the connection closed", response.StatusCode, p.Code, response.Close)
	}
}

func TestAnIncompleteUploadIsRefused(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/elections/planner:acquire", brokenOff{})
	request.Header.Set("Content-Type", wire.ContentType)
	a := w.send(request, "")
	if p := a.problem(t); a.status != http.StatusBadRequest || p.Code != leadership.InvalidArgument {
		t.Errorf("%d %s", a.status, a.body)
	}
}

type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
