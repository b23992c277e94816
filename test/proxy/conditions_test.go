package proxy_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"regent/test/proxy"
)

// pipe is an end that needs no socket. It cannot be half closed.
type pipe struct{ net.Conn }

func (p pipe) CloseWrite() error   { return p.Close() }
func (p pipe) SetLinger(int) error { return nil }

// inBubble runs f within synctest, between the two ends of a hop.
func inBubble(t *testing.T, f func(t *testing.T, client, server net.Conn, hop *proxy.Hop)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, in := net.Pipe()
		server, out := net.Pipe()
		hop := proxy.Between(pipe{in}, pipe{out})
		defer hop.Quit()
		f(t, client, server, hop)
	})
}

// heard is what has come. It is settled after synctest.Wait.
type heard struct {
	mu    sync.Mutex // guards all below
	data  []byte
	ended bool
}

func listen(c net.Conn) *heard {
	h := &heard{}
	go func() {
		b := make([]byte, 1<<14)
		for h.add(b, c) {
		}
	}()
	return h
}

func (h *heard) add(b []byte, c net.Conn) bool {
	n, err := c.Read(b)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.data = append(h.data, b[:n]...)
	h.ended = err != nil
	return err == nil
}

// settled is what has come once nothing moves any more without time.
func (h *heard) settled() (data string, ended bool) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.data), h.ended
}

func send(t *testing.T, c net.Conn, data string) {
	t.Helper()
	if _, err := io.WriteString(c, data); err != nil {
		t.Fatal(err)
	}
}

func TestLatencyDelaysEachPieceByItself(t *testing.T) {
	inBubble(t, func(t *testing.T, client, server net.Conn, hop *proxy.Hop) {
		hop.Set(proxy.Conditions{Latency: time.Second})
		for _, way := range []struct{ from, to net.Conn }{{client, server}, {server, client}} {
			go func() {
				for i := range 100 {
					way.from.Write([]byte{byte(i)})
					time.Sleep(time.Millisecond)
				}
			}()
			start, b := time.Now(), make([]byte, 1)
			for i := range 100 {
				if _, err := way.to.Read(b); err != nil {
					t.Fatal(err)
				}
				if at, want := time.Since(start), time.Second+time.Duration(i)*time.Millisecond; b[0] != byte(i) || at != want {
					t.Fatalf("%d came after %v, and not %d after %v", b[0], at, i, want)
				}
			}
		}
	})
}

func TestNewConditionsApplyToPiecesUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, client, server net.Conn, hop *proxy.Hop) {
		hop.Set(proxy.Conditions{Latency: time.Hour})
		got := listen(server)
		send(t, client, "a")
		time.Sleep(time.Second)
		hop.Set(proxy.Conditions{Latency: 3 * time.Second})
		time.Sleep(2*time.Second - time.Millisecond)
		if data, _ := got.settled(); data != "" {
			t.Error("it came before the new latency was over")
		}
		time.Sleep(time.Millisecond)
		if data, _ := got.settled(); data != "a" {
			t.Error("it did not come when the new latency was over")
		}
		hop.Set(proxy.Conditions{Latency: time.Hour})
		send(t, client, "b")
		hop.Heal()
		if data, _ := got.settled(); data != "ab" {
			t.Error("it did not come when the weather was healed")
		}
	})
}

func TestLostPiecesArriveAfterHeal(t *testing.T) {
	for _, way := range []proxy.Way{proxy.Request, proxy.Reply} {
		t.Run(way.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, client, server net.Conn, hop *proxy.Hop) {
				ends := [2]net.Conn{client, server}
				from, to := ends[way], ends[1-way]
				there, back := listen(to), listen(from)
				var w proxy.Conditions
				w.Lost[way] = true
				hop.Set(w)
				send(t, from, "lost")
				send(t, to, "not lost")
				time.Sleep(time.Hour)
				if data, _ := there.settled(); data != "" {
					t.Errorf("%q passed", data)
				}
				if data, _ := back.settled(); data != "not lost" {
					t.Errorf("%q passed the other way", data)
				}
				from.Close()
				if _, ended := there.settled(); ended {
					t.Error("the end passed")
				}
				hop.Heal()
				if data, ended := there.settled(); data != "lost" || !ended {
					t.Errorf("after it was healed %q came, ended: %v", data, ended)
				}
			})
		})
	}
}

func TestHalfOpenHidesTheEndFromTheOtherSide(t *testing.T) {
	inBubble(t, func(t *testing.T, client, server net.Conn, hop *proxy.Hop) {
		got := listen(server)
		hop.Set(proxy.Conditions{HalfOpen: true})
		send(t, client, "last words")
		client.Close()
		send(t, server, "after the end")
		time.Sleep(time.Hour)
		send(t, server, "after the end")
		if data, ended := got.settled(); data != "last words" || ended {
			t.Errorf("%q came, ended: %v", data, ended)
		}
		hop.Heal()
		if _, ended := got.settled(); !ended {
			t.Error("after it was healed the end did not come")
		}
	})
}

func TestRateIsKeptAndLifted(t *testing.T) {
	inBubble(t, func(t *testing.T, client, server net.Conn, hop *proxy.Hop) {
		got := listen(server)
		for _, rate := range []int{10_000, 1, 7, 100, 1} {
			before, _ := got.settled()
			hop.Set(proxy.Conditions{Rate: rate})
			send(t, client, string(make([]byte, 3*rate)))
			time.Sleep(2 * time.Second)
			data, _ := got.settled()
			step := max(1, rate/20)
			if n := len(data) - len(before); n < 2*rate-step || n > 2*rate+step {
				t.Errorf("in 2 s %d bytes passed, and not %d", n, 2*rate)
			}
			hop.Heal()
			if data, _ := got.settled(); len(data)-len(before) != 3*rate {
				t.Errorf("after it was healed %d bytes have passed, and not %d", len(data)-len(before), 3*rate)
			}
		}
	})
}

func TestFastSenderIsHeldUp(t *testing.T) {
	inBubble(t, func(t *testing.T, client, server net.Conn, hop *proxy.Hop) {
		hop.Set(proxy.Conditions{Lost: [2]bool{true, true}})
		var sent int
		go func() {
			for {
				n, err := client.Write([]byte{byte(sent)})
				sent += n
				if err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		before := sent
		if sent == 0 || sent > proxy.MaxHeld+2 {
			t.Errorf("%d pieces were taken in", sent)
		}
		hop.Heal()
		b := make([]byte, before)
		if _, err := io.ReadFull(server, b); err != nil || b[before-1] != byte(before-1) {
			t.Errorf("the last piece is %d: %v", b[before-1], err)
		}
		if synctest.Wait(); sent <= before {
			t.Error("the sender is still held up")
		}
	})
}

func TestHopEndsThoughNoOneReads(t *testing.T) {
	for _, w := range []proxy.Conditions{{}, {Lost: [2]bool{true, true}}, {HalfOpen: true}, {Latency: time.Hour}, {Rate: 1}} {
		t.Run(w.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, client, server net.Conn, hop *proxy.Hop) {
				hop.Set(w)
				for _, c := range []net.Conn{client, server} {
					go io.Copy(c, zeros{})
				}
				synctest.Wait()
				start := time.Now()
				hop.Quit()
				if took := time.Since(start); took != 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }
