package guard

import (
	"testing"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Methods that a client makes up are one label.
func TestVerbLabel(t *testing.T) {
	for _, tt := range [][3]string{
		{"GET", "list", "LIST"}, {"GET", "watch", "WATCH"}, {"GET", "get", "GET"}, {"HEAD", "get", "GET"},
		{"POST", "create", "POST"}, {"PUT", "update", "PUT"}, {"PATCH", "patch", "PATCH"}, {"DELETE", "deletecollection", "DELETE"},
		{"BREW", "", "other"},
	} {
		if got := verbLabel(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s %s: %s, want %s", tt[0], tt[1], got, tt[2])
		}
	}
}

func TestScopeLabel(t *testing.T) {
	for want, info := range map[string]*apirequest.RequestInfo{
		"cluster":   {Verb: "list"},
		"namespace": {Verb: "list", Namespace: "a"},
		"resource":  {Verb: "create", Namespace: "a"},
	} {
		if got := scopeLabel(info); got != want {
			t.Errorf("%+v: %s", info, got)
		}
	}
}
