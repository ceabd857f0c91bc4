package kind

import (
	"slices"
	"testing"
)

func registered(r *Registry) (list []string) {
	for _, k := range r.Set().Kinds {
		list = append(list, k.GroupResource().String())
	}
	return list
}

func TestRegistry(t *testing.T) {
	r := NewRegistry(map[string]int{"": 2, "apps": 1})
	core := &Kind{Resource: "events", Versions: []Version{{Name: "v1"}}, Stored: Stored{Resource: "events"}}
	other := &Kind{Group: "events.k8s.io", Resource: "events", Versions: []Version{{Name: "v1"}}, Stored: Stored{Resource: "events"}}
	apps := &Kind{Group: "apps", Resource: "deployments", Versions: []Version{{Name: "v1"}, {Name: "v1beta1"}}, Stored: Stored{Group: "apps", Resource: "deployments"}}
	toys := &Kind{Group: "a.example.com", Resource: "toys", Versions: []Version{{Name: "v1"}}, Custom: &CustomResource{}}
	changed, before := r.Changed(), r.Set()
	r.Replace(nil, []*Kind{other, toys, apps, core})
	select {
	case <-changed:
	default:
		t.Error("the channel of Changed is open after a change")
	}
	// Groups without a priority come last, in alphabetical order.
	if want := []string{"events", "deployments.apps", "toys.a.example.com", "events.events.k8s.io"}; !slices.Equal(registered(r), want) {
		t.Errorf("order %v, want %v", registered(r), want)
	}
	if len(before.Kinds) != 0 || r.Set().Generation <= before.Generation {
		t.Errorf("the set before has %d kinds; generations %d and %d", len(before.Kinds), before.Generation, r.Set().Generation)
	}
	if r.Lookup("apps", "v1beta1", "deployments") != apps || r.Lookup("apps", "v2", "deployments") != nil {
		t.Error("Lookup does not go by version")
	}
	if same := r.Set().SameObjects(core); !slices.Equal(same, []*Kind{core, other}) {
		t.Errorf("the same objects as core events: %v", same)
	}
	if s := r.Set(); !s.HasGroup("apps") || s.HasGroup("a.example.com") || s.Priority("apps") != 1 {
		t.Error("HasGroup is for built-in groups only")
	}
	r.Replace([]*Kind{apps}, nil)
	if r.Lookup("apps", "v1", "deployments") != nil || r.Lookup("", "v1", "events") != core {
		t.Errorf("after apps was removed: %v", registered(r))
	}
}
