package aggregator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
)

func listed(s *Services) (names []string) {
	for _, x := range s.List() {
		names = append(names, x.Object.Name)
	}
	return names
}

// TestServices puts and removes objects one after the other. Each change is announced, and what
// changes nothing is not.
func TestServices(t *testing.T) {
	s := newServices(t, elsewhere{})
	for _, step := range []struct {
		name    string
		change  func()
		changed bool
		want    []string
	}{
		{"an object with a Service", func() { s.Put(remote("v1.two.example.com")) }, true, []string{"v1.two.example.com"}},
		{"one without", func() { s.Put(local("v1.mine.example.com", 1, "")) }, false, []string{"v1.two.example.com"}},
		{"a second one is sorted by name", func() { s.Put(remote("v1.one.example.com")) }, true, []string{"v1.one.example.com", "v1.two.example.com"}},
		{"the same again", func() { s.Put(remote("v1.one.example.com")) }, true, []string{"v1.one.example.com", "v1.two.example.com"}},
		{"an object loses its Service", func() { s.Put(local("v1.one.example.com", 1, "")) }, true, []string{"v1.two.example.com"}},
		{"a removed one", func() { s.Remove("v1.two.example.com") }, true, nil},
		{"it is removed again", func() { s.Remove("v1.two.example.com") }, false, nil},
	} {
		changed := s.Changed()
		step.change()
		if diff := cmp.Diff(step.want, listed(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		select {
		case <-changed:
			if !step.changed {
				t.Errorf("%s: a change is announced", step.name)
			}
		default:
			if step.changed {
				t.Errorf("%s: no change is announced", step.name)
			}
		}
	}
}

// A Service keeps its connections unless it is reached in another way than before.
func TestServicesKeepConnections(t *testing.T) {
	const name = "v1.example.com"
	for _, test := range []struct {
		name   string
		change func(*apiregistration.APIService)
		keeps  bool
	}{
		{"another priority", func(o *apiregistration.APIService) { o.Spec.VersionPriority = 9 }, true},
		{"another status", func(o *apiregistration.APIService) { o.Status.Conditions = []apiregistration.APIServiceCondition{{}} }, true},
		{"another Service", func(o *apiregistration.APIService) { o.Spec.Service.Name = "other" }, false},
		{"another namespace", func(o *apiregistration.APIService) { o.Spec.Service.Namespace = "other" }, false},
		{"another authority", func(o *apiregistration.APIService) { o.Spec.CABundle = []byte("other") }, false},
		{"certificates are verified", func(o *apiregistration.APIService) { o.Spec.InsecureSkipTLSVerify = false }, false},
	} {
		s := newServices(t, elsewhere{})
		s.Put(remote(name))
		before := s.Find(name)
		object := remote(name)
		test.change(object)
		s.Put(object)
		if now := s.Find(name); now.Object != object || (now.target == before.target) != test.keeps {
			t.Errorf("%s: keeps connections: %v, want %v", test.name, now.target == before.target, test.keeps)
		}
	}
}

// Requests of a group version go to its extension server, and all others stay.
func TestServicesOf(t *testing.T) {
	s := newServices(t, elsewhere{})
	if x := s.Of(&apirequest.RequestInfo{Path: "/apis/one.example.com/v1"}); x != nil {
		t.Errorf("without any: %s", x.Object.Name)
	}
	for _, name := range []string{"v1.one.example.com", "v2.one.example.com", "v1."} {
		s.Put(remote(name))
	}
	for path, want := range map[string]string{
		"/apis/one.example.com/v1":                           "v1.one.example.com",
		"/apis/one.example.com/v1/namespaces/a/things/b/log": "v1.one.example.com",
		"/apis/one.example.com/v2/things":                    "v2.one.example.com",
		"/apis/one.example.com/v3/things":                    "",
		"/apis/one.example.com":                              "", // a group's discovery is put together here
		"/apis":                                              "",
		"/apis/apps/v1/deployments":                          "",
		"/api":                                               "v1.",
		"/api/v1/pods":                                       "v1.",
		"/apiary":                                            "",
		"/healthz":                                           "",
	} {
		got := ""
		if x := s.Of(&apirequest.RequestInfo{Path: path}); x != nil {
			got = x.Object.Name
		}
		if got != want {
			t.Errorf("%s goes to %q, want %q", path, got, want)
		}
	}
}

func TestServiceIsAvailable(t *testing.T) {
	s := newServices(t, elsewhere{})
	const name = "v1.example.com"
	for status, want := range map[apiregistration.ConditionStatus]bool{
		"": false, apiregistration.ConditionTrue: true, apiregistration.ConditionFalse: false, apiregistration.ConditionUnknown: false,
	} {
		object := remote(name)
		if status != "" {
			helper.SetAPIServiceCondition(object, apiregistration.APIServiceCondition{Type: apiregistration.Available, Status: status})
		}
		if s.Put(object); s.Find(name).Available() != want {
			t.Errorf("condition %q: available is %v", status, !want)
		}
	}
}
