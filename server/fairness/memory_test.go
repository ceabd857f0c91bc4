package fairness

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// decide remembers a decision about the request of a user for a path.
func (m *memory) decide(who user.Info, path string) {
	m.remember(question{verb: "get", path: path}, who, &decision{groups: who.GetGroups(), level: &level{}, epoch: m.epoch.Load()})
}

func (m *memory) knows(who user.Info, path string) bool {
	return m.recall(question{verb: "get", path: path}, who) != nil
}

// known returns how many decisions about a user are remembered.
func known(m *memory, who user.Info) int { return len(m.known[who.GetName()]) }

// A client that asks more different questions than are remembered pushes out its own alone.
func TestMemoryIsShared(t *testing.T) {
	m := &memory{}
	for i := range 10 {
		m.decide(bob, strconv.Itoa(i))
	}
	for i := range 3 * mostKnown {
		m.decide(ann, strconv.Itoa(i))
	}
	if n := known(m, bob); n != 10 {
		t.Errorf("%d of bob's 10 decisions are remembered", n)
	}
	if !m.knows(ann, strconv.Itoa(3*mostKnown-1)) {
		t.Error("ann's last decision is not remembered")
	}
	for i := range mostKnown {
		m.decide(bob, strconv.Itoa(i))
	}
	if a, b := known(m, ann), known(m, bob); a+b != mostKnown || b < mostKnown/2-1 {
		t.Errorf("ann has %d, bob %d, after both have asked as many questions as are remembered", a, b)
	}
	for i := range mostKnown {
		m.decide(&user.DefaultInfo{Name: fmt.Sprint("user", i)}, "/")
	}
	total := 0
	for _, decisions := range m.known {
		total += len(decisions)
	}
	if total != m.size || total > mostKnown {
		t.Errorf("%d decisions are remembered, %d counted, at most %d", total, m.size, mostKnown)
	}
}

// What was decided before a change is unknown after it. What is long is not remembered.
func TestMemoryForgets(t *testing.T) {
	m := &memory{}
	m.decide(ann, "/a")
	m.decide(ann, "/a")
	if !m.knows(ann, "/a") || m.size != 1 {
		t.Errorf("a decision is not remembered once: %d", m.size)
	}
	if m.knows(&user.DefaultInfo{Name: "ann", Groups: []string{"other"}}, "/a") {
		t.Error("it is remembered for other groups")
	}
	m.forget()
	if m.knows(ann, "/a") {
		t.Error("it is remembered after a change")
	}
	m.decide(ann, "/b")
	if m.size != 1 {
		t.Errorf("%d decisions after a change", m.size)
	}
	if m.decide(ann, strings.Repeat("x", longQuestion)); m.size != 1 {
		t.Error("a long question is remembered")
	}
}
