package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/http2"

	"github.com/plinth-io/plinth/server/apitest"
)

// A stop lets the write in flight finish, ends the watch cleanly after its last event,
// and leaves the write in the database.
func TestShutdown(t *testing.T) {
	dir := t.TempDir()
	s := New(Config{DataDir: dir, ShutdownDelay: 200 * time.Millisecond, ShutdownTimeout: 5 * time.Minute, Controllers: []string{}})
	patient(s)
	idle(s) // who runs is counted
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	url := s.URL() + "/api/v1/namespaces/default/configmaps"
	client := apitest.Admin(t, s)
	watch, err := client.Get(url + "?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()

	half, rest := io.Pipe()
	req, _ := http.NewRequest("POST", url, half)
	req.Header.Set("Content-Type", "application/json")
	code := make(chan int, 1)
	go func() {
		resp, err := client.Do(req)
		if err != nil {
			t.Error(err)
			code <- 0
			return
		}
		resp.Body.Close()
		code <- resp.StatusCode
	}()
	fmt.Fprint(rest, `{"metadata":{"name":`)
	for s.guard.Running() < 2 { // the watch and the write
		time.Sleep(time.Millisecond)
	}

	closed, asked := make(chan error, 1), make(chan struct{})
	s.jobs.Go(func() { <-asked }) // the stop goes on when /readyz has been asked
	go func() { closed <- s.Close() }()
	for !s.stopping.Load() {
		time.Sleep(time.Millisecond)
	}
	if code, _, body := apitest.Do(t, client, "GET", s.URL()+"/readyz", ""); code != 500 || !strings.Contains(body, "[-]shutdown failed") {
		t.Errorf("/readyz while stopping: %d %s", code, body)
	}
	close(asked)
	for !s.guard.Closed() {
		time.Sleep(time.Millisecond)
	}
	for { // until the port is closed to new connections
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"))
		if err != nil {
			break
		}
		conn.Close()
	}
	fmt.Fprint(rest, `"in-flight"}}`)
	rest.Close()
	if got := <-code; got != 201 {
		t.Errorf("the write in flight got %d", got)
	}
	last := ""
	lines := bufio.NewScanner(watch.Body)
	for lines.Scan() {
		last = lines.Text()
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the watch broke off: %v", err)
	}
	if last != "" && !strings.Contains(last, `"type":"ADDED"`) && !strings.Contains(last, `"type":"BOOKMARK"`) {
		t.Errorf("the watch ended with %s", last)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}

	again := start(t, Config{DataDir: dir})
	if code, _, body := apitest.Do(t, apitest.Admin(t, again), "GET", again.URL()+"/api/v1/namespaces/default/configmaps/in-flight", ""); code != 200 {
		t.Errorf("after the restart: %d %s", code, body)
	}
}

// A request that does not end is cut off, and Close says so.
func TestShutdownTimeout(t *testing.T) {
	s := New(Config{ShutdownTimeout: 100 * time.Millisecond, Controllers: []string{}})
	entered := make(chan struct{})
	route("/hold", func(c echo.Context) error {
		close(entered)
		<-c.Request().Context().Done()
		return c.Request().Context().Err()
	})(s)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	ended := make(chan struct{})
	client := apitest.Admin(t, s)
	go func() {
		defer close(ended)
		if resp, err := client.Get(s.URL() + "/hold"); err == nil {
			resp.Body.Close()
		}
	}()
	<-entered
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("Close: %v", err)
	}
	<-ended
}

// A handler has returned before net/http has written its answer: a stop does not cut the answer off.
func TestStopAwaitsAnswers(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := start(t, Config{}, route("/hold", func(c echo.Context) error {
		close(entered)
		<-leave
		return c.String(http.StatusOK, "whole")
	}))
	g := &siege{T: t, s: s}
	h := g.adminConn()
	must(t, h.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})) // takes no answer yet
	stream, err := h.ask("GET", "/hold", true)
	must(t, err)
	<-entered
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	apitest.Eventually(t, "the server stops", s.guard.Closed)
	close(leave)
	<-s.guard.Idle()
	time.Sleep(20 * s.config.Linger)
	must(t, h.WriteWindowUpdate(stream, 1<<10))
	for answer, ended := "", false; !ended; {
		f, err := h.ReadFrame()
		if err != nil {
			t.Fatalf("the answer was cut off after %q: %v", answer, err)
		}
		if data, ok := f.(*http2.DataFrame); ok {
			answer, ended = answer+string(data.Data()), data.StreamEnded()
		}
		if ended && answer != "whole" {
			t.Errorf("answer %q", answer)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
