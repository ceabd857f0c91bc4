package way

import (
	"bufio"
	"net"
	"testing"
	"time"
)

// patience is how long anything may take on a machine that is busy.
const patience = 2 * time.Minute

// echo answers each line with itself, and tells of each line it got.
func echo(t *testing.T) (address string, lines <-chan string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					select {
					case got <- line:
					default: // nobody takes them
					}
					_, _ = c.Write([]byte(line))
				}
			}()
		}
	}()
	return l.Addr().String(), got
}

// caller is a client of the echo behind a way.
type caller struct {
	net.Conn
	r *bufio.Reader
}

func call(t *testing.T, w *Way) *caller {
	t.Helper()
	c, err := net.Dial("tcp", w.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &caller{c, bufio.NewReader(c)}
}

func (c *caller) say(t *testing.T, line string) {
	t.Helper()
	if _, err := c.Write([]byte(line)); err != nil {
		t.Fatal(err)
	}
}

// ask says a line and returns the answer, or the error that came in its place.
func (c *caller) ask(t *testing.T, line string) (string, error) {
	t.Helper()
	c.say(t, line)
	return c.r.ReadString('\n')
}

// askUntilLost says a line until its answer does not come. It takes the lines that were answered.
func (c *caller) askUntilLost(t *testing.T, line string, lines <-chan string) {
	t.Helper()
	for {
		if _, err := c.ask(t, line); err != nil {
			return
		}
		<-lines
	}
}

func open(t *testing.T) (*Way, <-chan string) {
	address, lines := echo(t)
	w, err := New(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w, lines
}

func TestPass(t *testing.T) {
	t.Parallel()
	w, _ := open(t)
	c := call(t, w)
	w.Slow(30 * time.Millisecond)
	begun := time.Now()
	if got, err := c.ask(t, "a\n"); got != "a\n" || err != nil || time.Since(begun) < 60*time.Millisecond {
		t.Errorf("%q, %v after %v", got, err, time.Since(begun))
	}
}

func TestBlock(t *testing.T) {
	t.Parallel()
	w, lines := open(t)
	c := call(t, w)
	if _, err := c.ask(t, "a\n"); err != nil {
		t.Fatal(err)
	}
	<-lines
	w.Block()
	c.say(t, "b\n")
	select {
	case line := <-lines:
		t.Errorf("%q came through", line)
	case <-time.After(50 * time.Millisecond):
	}
	w.Unblock()
	if got, err := c.r.ReadString('\n'); got != "b\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLoseAfter loses exactly the answer to what a client has sent, which the target has got.
func TestLoseAfter(t *testing.T) {
	t.Parallel()
	w, lines := open(t)
	if w.LoseAfter(time.Millisecond, 0, "commit") {
		t.Error("nobody has sent it")
	}
	c := call(t, w)
	if got, err := c.ask(t, "insert\n"); got != "insert\n" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	<-lines
	lost := make(chan bool)
	go func() { lost <- w.LoseAfter(patience, 20*time.Millisecond, "commit", "COMMIT") }()
	c.askUntilLost(t, "COMMIT\n", lines) // the trap may not be there yet
	if !<-lost {
		t.Error("nothing was lost")
	}
	if line := <-lines; line != "COMMIT\n" {
		t.Errorf("the target got %q", line)
	}
	if got, err := call(t, w).ask(t, "COMMIT\n"); got != "COMMIT\n" || err != nil {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

func TestLoseAndLead(t *testing.T) {
	t.Parallel()
	w, lines := open(t)
	c := call(t, w)
	go w.Lose(100 * time.Millisecond)
	c.askUntilLost(t, "a\n", lines)
	if line := <-lines; line != "a\n" {
		t.Errorf("the target got %q", line)
	}
	other, others := echo(t)
	w.Lead(other)
	for got := ""; got != "b\n"; { // answers may still be lost
		got, _ = call(t, w).ask(t, "b\n")
	}
	if line := <-others; line != "b\n" {
		t.Errorf("the other target got %q", line)
	}
}
