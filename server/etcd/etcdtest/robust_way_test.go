package etcdtest_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// way is a proxy on loopback whose target may change, and that can be slow, blocked, or cut.
type way struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	target  string // HOST:PORT; none yet if empty
	delay   time.Duration
	blocked chan struct{} // nothing passes until it is closed; nil: all does
	mute    bool          // what the target answers is lost
	conns   map[net.Conn]bool
	closed  bool
}

func newWay(t testing.TB, target string) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{listener: l, target: target, conns: map[net.Conn]bool{}}
	w.wg.Go(w.accept)
	t.Cleanup(w.close)
	return w
}

func (w *way) address() string { return w.listener.Addr().String() }

// lead changes the target of new connections.
func (w *way) lead(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = target
}

// slow delays everything that passes.
func (w *way) slow(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// block holds everything back until unblock.
func (w *way) block() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked == nil && !w.closed {
		w.blocked = make(chan struct{})
	}
}

func (w *way) unblock() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked != nil {
		close(w.blocked)
		w.blocked = nil
	}
}

// lose loses all answers from now on, and then what has been asked meanwhile is cut off.
func (w *way) lose(d time.Duration) {
	w.setMute(true)
	time.Sleep(d)
	w.cut()
	w.setMute(false)
}

func (w *way) setMute(mute bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = mute
}

// cut ends all connections, with what is on its way.
func (w *way) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		c.Close()
	}
	clear(w.conns)
}

func (w *way) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.unblock()
	w.listener.Close()
	w.cut()
	w.wg.Wait()
}

func (w *way) accept() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		target := w.target
		w.mu.Unlock()
		to, err := net.Dial("tcp", target)
		if err != nil {
			from.Close()
			continue
		}
		if !w.add(from, to) {
			return
		}
		w.wg.Go(func() { w.carry(from, to, false) })
		w.wg.Go(func() { w.carry(to, from, true) })
	}
}

func (w *way) add(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.conns[c] = true
		if w.closed {
			c.Close()
		}
	}
	return !w.closed
}

func (w *way) carry(from, to net.Conn, answers bool) {
	defer w.drop(from, to)
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		w.mu.Lock()
		delay, blocked, lost := w.delay, w.blocked, w.mute && answers
		w.mu.Unlock()
		if lost {
			_, _ = io.Copy(io.Discard, from) // until it is cut: no later answer must arrive in its place
			return
		}
		if blocked != nil {
			<-blocked
		}
		time.Sleep(delay)
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// drop closes a connection and its other half.
func (w *way) drop(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(w.conns, c)
	}
}
