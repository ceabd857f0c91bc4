package guard

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Reads and writes have limits of their own, and members of system:masters have none.
func TestInflight(t *testing.T) {
	l := newInflight(Limits{Reads: 2, Writes: 1})
	ann := &user.DefaultInfo{Name: "ann"}
	admin := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	get, create := &apirequest.RequestInfo{Verb: "get"}, &apirequest.RequestInfo{Verb: "create"}
	for i, step := range []struct {
		info *apirequest.RequestInfo
		who  user.Info
		want bool
	}{
		{get, ann, true}, {get, ann, true}, {get, ann, false}, {get, admin, true},
		{create, ann, true}, {create, ann, false}, {create, admin, true},
	} {
		if got := l.of(step.info).enter(step.who); got != step.want {
			t.Errorf("step %d: let in: %v", i, got)
		}
	}
	if reads, writes := l.reads.running.Load(), l.writes.running.Load(); reads != 3 || writes != 2 {
		t.Errorf("%d reads and %d writes run", reads, writes)
	}
	for range 2 {
		l.reads.leave()
	}
	if !l.of(get).enter(ann) {
		t.Error("a request is turned away although others have left")
	}
}

func TestLongRunning(t *testing.T) {
	for _, tt := range []struct {
		verb, subresource string
		want              bool
	}{
		{"watch", "", true}, {"proxy", "", true}, {"get", "log", true}, {"create", "exec", true}, {"get", "portforward", true},
		{"get", "", false}, {"list", "", false}, {"update", "status", false}, {"create", "eviction", false},
	} {
		info := &apirequest.RequestInfo{Verb: tt.verb, Subresource: tt.subresource}
		l := newInflight(Limits{})
		if got := LongRunning(info); got != tt.want || (l.of(info) == nil) != tt.want {
			t.Errorf("%s %s: long-running: %v", tt.verb, tt.subresource, got)
		}
	}
}
