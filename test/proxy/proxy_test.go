package proxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"regent/test/proxy"
)

// echo is a server that sends back each line.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; {
					line, err := in.ReadBytes('\n')
					if err != nil {
						return
					}
					c.Write(line)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// talk sends a line and waits for it to come back.
func talk(c net.Conn) error {
	if _, err := c.Write([]byte("hello\n")); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(patience))
	_, err := c.Read(make([]byte, 100))
	return err
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestLineIsCutOrStallsUntilItIsHealed(t *testing.T) {
	t.Parallel()
	line := proxy.ForTest(t, echo(t))
	c := dial(t, line.Addr())
	require.NoError(t, talk(c))
	line.CutOff()
	var timeout net.Error
	if err := talk(c); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("over a line that is cut: %v", err)
	}
	if refused, err := net.Dial("tcp", line.Addr()); err == nil {
		defer refused.Close()
		if err := talk(refused); err == nil {
			t.Error("a new connection passes a line that is cut")
		}
	}
	line.Heal()
	c = dial(t, line.Addr())
	line.Stall()
	io.WriteString(c, "hello\n")
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("over a line that stalls: %v", err)
	}
	line.Heal()
	c.SetReadDeadline(time.Time{})
	if answer, err := bufio.NewReader(c).ReadString('\n'); answer != "hello\n" {
		t.Errorf("after it was healed: %q, %v", answer, err)
	}
}

func TestCutterCutsAtTheByte(t *testing.T) {
	t.Parallel()
	cutter := proxy.NewCutter(t, echo(t))
	line := "hello\n"
	for _, reset := range []bool{false, true} {
		for n := range len(line) + 1 {
			for _, cut := range []proxy.Cut{{Way: proxy.Request, After: n, Reset: reset}, {Way: proxy.Reply, After: n, Reset: reset}} {
				conn := cutter.Next(cut)
				heard, err := recite(dial(t, cutter.Addr()), line)
				conn.Wait()
				if conn.Passed(cut.Way) != n {
					t.Errorf("%+v: %d bytes passed", cut, conn.Passed(cut.Way))
				}
				if cut.Way == proxy.Reply && heard != line[:n] {
					t.Errorf("%+v: %q came back", cut, heard)
				}
				if cut.Way == proxy.Request && n < len(line) && heard != "" {
					t.Errorf("%+v: %q came back of half a line", cut, heard)
				}
				if reset != errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%+v: the connection ended with %v", cut, err)
				}
				if dropped := conn.Dropped(cut.Way); dropped != len(line)-n {
					t.Errorf("%+v: %d bytes dropped", cut, dropped)
				}
			}
		}
	}
}

// recite sends a line and returns all that comes until the connection ends.
func recite(c net.Conn, line string) (string, error) {
	if _, err := io.WriteString(c, line); err != nil {
		return "", err
	}
	c.SetReadDeadline(time.Now().Add(patience))
	heard, err := io.ReadAll(c)
	c.Close()
	return string(heard), err
}

// healthService serves gRPC's health checks until the test ends.
func healthService(t *testing.T) (service *health.Server, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, service := grpc.NewServer(), health.NewServer()
	healthpb.RegisterHealthServer(server, service)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return service, l.Addr().String()
}

func healthClient(t *testing.T, addr string) healthpb.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return healthpb.NewHealthClient(conn)
}

func TestGateFailsTheMethodsThatAreShutAndNoOthers(t *testing.T) {
	t.Parallel()
	service, addr := healthService(t)
	gate, err := proxy.NewGate(addr)
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	client := healthClient(t, gate.Addr())
	check := func() error {
		_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{})
		return err
	}
	watch, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	gate.Shut("Check")
	if err := check(); status.Code(err) != codes.Unavailable {
		t.Errorf("a call of a method that is shut: %v", err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Errorf("a stream of another method: %v", err)
	}
	gate.Shut("Watch")
	if err := check(); err != nil {
		t.Errorf("a call of another method: %v", err)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a stream that was open when its method was shut: %v", err)
	}
	gate.Open()
	service.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	if watch, err = client.Watch(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	if answer, err := watch.Recv(); err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("a stream once the gate is open again: %v, %v", answer, err)
	}
}

func TestCounterPassesAndCountsCalls(t *testing.T) {
	t.Parallel()
	service, addr := healthService(t)
	counter := proxy.NewCounter(t, addr)
	client := healthClient(t, counter.Addr())
	answer, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("a call: %v, %v", answer, err)
	}
	if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "x"}); status.Code(err) != codes.NotFound {
		t.Errorf("a call that fails: %v", err)
	}
	watch, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING} {
		if answer, err := watch.Recv(); err != nil || answer.GetStatus() != want {
			t.Errorf("a stream: %v, %v", answer, err)
		}
		service.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	}
	if calls := counter.Take(); calls.String() != "Check 2, Watch 1" || calls.Total() != 3 {
		t.Errorf("counted: %v", calls)
	}
	if calls := counter.Take(); calls.Total() != 0 {
		t.Errorf("counted since: %v", calls)
	}
}
