// Package way is a TCP proxy on loopback that breaks connections on request: it delays, blocks, cuts, and
// loses answers, also exactly those to a COMMIT. Loads that go on through faults stand behind it.
package way

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"
)

// Way leads to a target, which may change. Its methods are safe for concurrent use.
type Way struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	target  string // HOST:PORT; none yet if empty
	delay   time.Duration
	blocked chan struct{} // nothing passes until it is closed; nil: all does
	mute    bool          // what the target answers is lost
	trap    *trap
	conns   map[net.Conn]bool
	closed  bool
}

// trap waits for a client that sends one of the words. What the target answers to it is lost.
type trap struct {
	words [][]byte
	sent  chan struct{} // closed when one was sent
}

// New listens on a free port of loopback and leads to target, HOST:PORT.
func New(target string) (*Way, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &Way{listener: l, target: target, conns: map[net.Conn]bool{}}
	w.wg.Go(w.accept)
	return w, nil
}

// Address is where the way begins, HOST:PORT.
func (w *Way) Address() string { return w.listener.Addr().String() }

// Lead changes the target of new connections.
func (w *Way) Lead(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = target
}

// Slow delays everything that passes; 0 ends that.
func (w *Way) Slow(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// Block holds everything back until Unblock.
func (w *Way) Block() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked == nil && !w.closed {
		w.blocked = make(chan struct{})
	}
}

// Unblock lets everything pass again.
func (w *Way) Unblock() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked != nil {
		close(w.blocked)
		w.blocked = nil
	}
}

// Lose loses all answers for a time, and then cuts off whoever waits for one.
func (w *Way) Lose(d time.Duration) {
	w.setMute(true)
	time.Sleep(d)
	w.Cut()
	w.setMute(false)
}

// LoseAfter waits until a client sends one of the words, which reaches the target while the answer is lost,
// and then cuts. It returns false, and has done nothing, if no client has sent one within patience.
func (w *Way) LoseAfter(patience, after time.Duration, words ...string) bool {
	t := &trap{sent: make(chan struct{})}
	for _, word := range words {
		t.words = append(t.words, []byte(word))
	}
	w.setTrap(t)
	defer w.setTrap(nil)
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-t.sent:
	case <-late.C:
		return false
	}
	time.Sleep(after) // the target acts on what it was sent
	w.Cut()
	return true
}

func (w *Way) setTrap(t *trap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trap = t
}

func (w *Way) setMute(mute bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = mute
}

// Cut ends all connections, with what is on its way.
func (w *Way) Cut() {
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

// Close cuts, and ends the way.
func (w *Way) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.Unblock()
	w.listener.Close()
	w.Cut()
	w.wg.Wait()
}

func (w *Way) accept() {
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
		p := &passage{way: w, client: from, target: to}
		w.wg.Go(func() { p.carry(from, to, false) })
		w.wg.Go(func() { p.carry(to, from, true) })
	}
}

func (w *Way) add(conns ...net.Conn) bool {
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

// drop closes a connection and its other half.
func (w *Way) drop(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(w.conns, c)
	}
}

// passage is one connection on the way. Its fields are guarded by the way's mu.
type passage struct {
	way            *Way
	client, target net.Conn
	caught         bool // it went into a trap: answers are lost
}

func (p *passage) carry(from, to net.Conn, answers bool) {
	defer p.way.drop(from, to)
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		delay, blocked, lost := p.look(buffer[:n], answers)
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

// look says what happens to data.
func (p *passage) look(data []byte, answers bool) (delay time.Duration, blocked chan struct{}, lost bool) {
	w := p.way
	w.mu.Lock()
	defer w.mu.Unlock()
	if !answers && w.trap != nil && w.trap.catches(data) {
		p.caught = true
		close(w.trap.sent)
		w.trap = nil
	}
	return w.delay, w.blocked, answers && (w.mute || p.caught)
}

func (t *trap) catches(data []byte) bool {
	for _, word := range t.words {
		if bytes.Contains(data, word) {
			return true
		}
	}
	return false
}
