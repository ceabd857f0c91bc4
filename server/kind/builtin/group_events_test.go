package builtin_test

import (
	"strings"
	"testing"
)

// TestEventsOfBothGroups: each of the two groups of events reads the objects of the other.
func TestEventsOfBothGroups(t *testing.T) {
	core, events := find(t, "", "events"), find(t, "events.k8s.io", "events")
	obj := decode(t, events, `{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"a","namespace":"b"},"note":"hello"}`)
	stored, err := events.Codec.Encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(stored), `{"kind":"Event","apiVersion":"v1","metadata":{"name":"a"`) || !strings.Contains(string(stored), `"message":"hello"`) {
		t.Errorf("stored %s", stored)
	}
	if core.Key("b", "a") != events.Key("b", "a") {
		t.Errorf("keys %s and %s", core.Key("b", "a"), events.Key("b", "a"))
	}
	loaded, err := core.Codec.Load(stored)
	if err != nil {
		t.Fatal(err)
	}
	versioned, err := events.Codec.Versioned(loaded, events.GVK("v1").GroupVersion())
	if err != nil || versioned.GetObjectKind().GroupVersionKind() != events.GVK("v1") {
		t.Errorf("%v %v", versioned, err)
	}
}
