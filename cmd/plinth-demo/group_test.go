package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func startGroup(t *testing.T) (*group, <-chan error) {
	t.Helper()
	dir := t.TempDir()
	g, err := newGroup(filepath.Join(dir, "log"), dir)
	if err != nil {
		t.Fatal(err)
	}
	deaths := make(chan error, 1)
	g.onDeath = func(err error) { deaths <- err }
	t.Cleanup(g.stop)
	return g, deaths
}

// The error for a program that has ended says how it ended, where its log is, and what is in it.
func TestDeath(t *testing.T) {
	g, deaths := startGroup(t)
	p, err := g.start("/bin/sh", "-c", "echo beginning; seq 20; echo last words >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-deaths:
		for _, want := range []string{"sh ended (exit status 3)", p.log, "last words"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in: %v", want, err)
			}
		}
		if strings.Contains(err.Error(), "beginning") {
			t.Errorf("the whole log is shown: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody heard of it")
	}
}

// Programs are stopped in the reverse order of their start, and onDeath is not called.
func TestStopOrder(t *testing.T) {
	g, deaths := startGroup(t)
	ends := filepath.Join(g.home, "ends")
	var programs []*program
	for _, name := range []string{"first", "second"} {
		p, lines, err := g.startWithOutput("/bin/sh", "-c", `trap 'echo '$0' >>ends; exit' TERM; echo "export KUBECONFIG=$0"; while :; do sleep 0.1; done`, name)
		if err != nil {
			t.Fatal(err)
		}
		if line := <-lines; line != "export KUBECONFIG="+name {
			t.Fatalf("it said %q", line)
		}
		programs = append(programs, p)
	}
	g.stop()
	for _, p := range programs {
		<-p.ended
	}
	if text, err := os.ReadFile(ends); err != nil || string(text) != "second\nfirst\n" {
		t.Errorf("ended in the order %q, %v", text, err)
	}
	select {
	case err := <-deaths:
		t.Error(err)
	default:
	}
	if _, err := g.start("/bin/sh"); err == nil {
		t.Error("a program was started after the end")
	}
}

func TestMissingProgram(t *testing.T) {
	g, _ := startGroup(t)
	if _, err := g.start(filepath.Join(g.home, "kwok")); err == nil || !strings.Contains(err.Error(), "start kwok: ") || !strings.Contains(err.Error(), "make demo builds it") {
		t.Errorf("%v", err)
	}
}
