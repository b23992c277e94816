package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
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

// arrivals takes pieces of one byte until the end, and says what came when, since the start.
func arrivals(c net.Conn) (data []byte, after []time.Duration) {
	start, b := time.Now(), make([]byte, 1)
	for {
		if _, err := c.Read(b); err != nil {
			return data, after
		}
		data, after = append(data, b[0]), append(after, time.Since(start))
	}
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
		b := make([]byte, proxy.MaxPiece)
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

func TestEndIsDelayedToo(t *testing.T) {
	inBubble(t, func(t *testing.T, client, server net.Conn, hop *proxy.Hop) {
		hop.Set(proxy.Conditions{Latency: time.Second})
		client.Close()
		start := time.Now()
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
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

// jittered returns when each of 50 pieces that are sent at once comes.
func jittered(t *testing.T, seed uint64) (after []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		client, in := net.Pipe()
		server, out := net.Pipe()
		hop := proxy.Between(pipe{in}, pipe{out})
		defer hop.Quit()
		hop.Set(proxy.Conditions{Latency: time.Second, Jitter: time.Second, Seed: seed})
		go func() {
			for i := range 50 {
				client.Write([]byte{byte(i)})
				time.Sleep(100 * time.Millisecond)
			}
			client.Close()
		}()
		var data []byte
		data, after = arrivals(server)
		if !slices.IsSorted(data) || len(data) != 50 {
			t.Errorf("out of order: %v", data)
		}
	})
	return after
}

func TestJitterDependsOnSeedAndKeepsOrder(t *testing.T) {
	t.Parallel()
	after := jittered(t, 1)
	least, most := time.Hour, time.Duration(0)
	for i, at := range after {
		late := at - time.Duration(i)*100*time.Millisecond
		least, most = min(least, late), max(most, late)
	}
	if least < time.Second || most > 2*time.Second || least > 1500*time.Millisecond || most < 1500*time.Millisecond {
		t.Errorf("between %v and %v late", least, most)
	}
	if !slices.Equal(after, jittered(t, 1)) {
		t.Error("the same seed made other delays")
	}
	if slices.Equal(after, jittered(t, 2)) {
		t.Error("another seed made the same delays")
	}
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

func TestEndIsLostToo(t *testing.T) {
	inBubble(t, func(t *testing.T, client, server net.Conn, hop *proxy.Hop) {
		got := listen(server)
		hop.Set(proxy.Conditions{Lost: [2]bool{proxy.Request: true}})
		client.Close()
		if _, ended := got.settled(); ended {
			t.Error("the end passed")
		}
		hop.Heal()
		if _, ended := got.settled(); !ended {
			t.Error("after it was healed the end did not come")
		}
	})
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
	for _, size := range []int{1, proxy.MaxPiece} {
		t.Run("", func(t *testing.T) {
			inBubble(t, func(t *testing.T, client, server net.Conn, hop *proxy.Hop) {
				hop.Set(proxy.Conditions{Lost: [2]bool{true, true}})
				var sent int
				go func() {
					for {
						n, err := client.Write(bytes.Repeat([]byte{byte(sent / size)}, size))
						sent += n
						if err != nil {
							return
						}
					}
				}()
				synctest.Wait()
				if sent == 0 || sent > proxy.MaxHeld+2*proxy.MaxPiece || sent/size > proxy.MaxHeld/64+2 {
					t.Errorf("%d bytes in pieces of %d were taken in", sent, size)
				}
				before := sent
				hop.Heal()
				for i := range before / size {
					b := make([]byte, size)
					if _, err := io.ReadFull(server, b); err != nil || b[0] != byte(i) {
						t.Fatalf("piece %d is of %d: %v", i, b[0], err)
					}
				}
				synctest.Wait()
				if sent <= before {
					t.Error("the sender is still held up")
				}
			})
		})
	}
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

// socket is an end that lasts until it is closed, whatever was said to the other side before.
type socket struct {
	pipe
	closed atomic.Bool
}

func (s *socket) CloseWrite() error { return nil }

func (s *socket) Close() error {
	s.closed.Store(true)
	return s.pipe.Close()
}

func TestConnectionEndsWhenBothSidesHaveClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, in := net.Pipe()
		server, out := net.Pipe()
		ends := []*socket{{pipe: pipe{in}}, {pipe: pipe{out}}}
		hop := proxy.Between(ends[0], ends[1])
		defer hop.Quit()
		client.Close()
		synctest.Wait()
		if ends[1].closed.Load() {
			t.Error("the server cannot answer a client that has said all")
		}
		server.Close()
		synctest.Wait()
		if !ends[0].closed.Load() || !ends[1].closed.Load() {
			t.Error("an end is still open")
		}
	})
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestConditionsAsText(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]proxy.Conditions{
		"clear":                   {},
		"50ms late":               {Latency: 50 * time.Millisecond},
		"50ms to 75ms late":       {Latency: 50 * time.Millisecond, Jitter: 25 * time.Millisecond},
		"requests lost":           {Lost: [2]bool{proxy.Request: true}},
		"replies lost, half-open": {Lost: [2]bool{proxy.Reply: true}, HalfOpen: true},
		"refusing, 9 bytes/s":     {Refuse: true, Rate: 9},
	} {
		if got := w.String(); got != want {
			t.Errorf("%q, and not %q", got, want)
		}
	}
}
