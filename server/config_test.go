package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
)

const claims = "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims"

const claim = `{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1beta1","metadata":{"name":"a"},` +
	`"spec":{"devices":{"requests":[{"name":"gpu","deviceClassName":"gpu.example.com"}]}}}`

// TestRuntimeConfigKeepsObjects switches a resource off and on again over one database.
func TestRuntimeConfigKeepsObjects(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) { keepObjects(t, d.Fresh(t)) })
}

func keepObjects(t *testing.T, dsn string) {
	for _, step := range []struct {
		settings map[string]string
		method   string
		path     string
		body     string
		code     int
		has      string
	}{
		{map[string]string{"resource.k8s.io/v1": "false"}, "GET", claims, "", 404, "404 page not found"},
		{map[string]string{"resource.k8s.io/v1beta1": "true"}, "POST", claims, claim, 201, `"name":"a"`},
		{map[string]string{"resource.k8s.io/v1beta1/resourceclaims": "false", "resource.k8s.io/v1beta1": "true", "resource.k8s.io/v1": "false"}, "GET", claims + "/a", "", 404, "the server could not find the requested resource"},
		{map[string]string{"resource.k8s.io/v1beta2/resourceclaims": "true"}, "GET", strings.Replace(claims, "v1beta1", "v1beta2", 1) + "/a", "", 200, `"exactly":{"deviceClassName":"gpu.example.com"`},
		{map[string]string{"resource.k8s.io/v1beta2": "true"}, "GET", claims + "/a", "", 404, "the server could not find the requested resource"},
		{map[string]string{"api/beta": "true"}, "DELETE", claims + "/a", "", 200, `"name":"a"`},
	} {
		s := start(t, Config{DSN: dsn, RuntimeConfig: step.settings})
		code, _, body := apitest.Do(t, apitest.Admin(t, s), step.method, s.URL()+step.path, step.body)
		if code != step.code || !strings.Contains(body, step.has) {
			t.Errorf("%v: %s %s: %d %s", step.settings, step.method, step.path, code, body)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRuntimeConfigEverywhere looks for versions wherever they show.
func TestRuntimeConfigEverywhere(t *testing.T) {
	s := start(t, Config{RuntimeConfig: map[string]string{"apps/v1": "false", "admissionregistration.k8s.io/v1beta1": "true", "autoscaling/v2": "false"}})
	client := apitest.Admin(t, s)
	for _, c := range []struct {
		group, version string
		there          bool
	}{
		{"apps", "v1", false},
		{"batch", "v1", true},
		{"admissionregistration.k8s.io", "v1beta1", true},
		{"admissionregistration.k8s.io", "v1", true},
		{"autoscaling", "v1", true},
		{"autoscaling", "v2", false},
	} {
		gv := c.group + "/" + c.version
		checkThere(t, s, client, "/apis/"+gv, `"groupVersion":"`+gv+`"`, c.there)
		checkThere(t, s, client, "/apis", `"groupVersion":"`+gv+`"`, c.there)
		checkThere(t, s, client, "/", `"/apis/`+gv+`"`, c.there)
		checkThere(t, s, client, "/openapi/v3", `"apis/`+gv+`"`, c.there)
		checkThere(t, s, client, "/openapi/v2", `"/apis/`+gv+`/"`, c.there)
		checkThere(t, s, client, "/apis/apiregistration.k8s.io/v1/apiservices", `"name":"`+c.version+"."+c.group+`"`, c.there)
	}
	// The other version of the same objects is what is preferred now.
	checkThere(t, s, client, "/apis/autoscaling", `"preferredVersion":{"groupVersion":"autoscaling/v1"`, true)
}

func checkThere(t *testing.T, s *Server, client *http.Client, path, text string, there bool) {
	t.Helper()
	_, _, body := apitest.Do(t, client, "GET", s.URL()+path, "")
	compact := strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(body)
	if strings.Contains(compact, text) != there {
		t.Errorf("%s: %s is there: %v, want %v", path, text, !there, there)
	}
}

// TestRuntimeConfigStarts starts servers that lack what a server makes at its start.
func TestRuntimeConfigStarts(t *testing.T) {
	for _, off := range []string{"api/ga", "api/v1", "api/v1/namespaces", "api/v1/endpoints", "discovery.k8s.io/v1", "coordination.k8s.io/v1",
		"api/v1/services", "api/v1/serviceaccounts", "networking.k8s.io/v1", "rbac.authorization.k8s.io/v1", "batch/v1", "scheduling.k8s.io/v1", "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1"} {
		t.Run(off, func(t *testing.T) {
			t.Parallel()
			var log apitest.Lines
			s := New(Config{RuntimeConfig: map[string]string{off: "false"}, Log: log.Log()})
			if err := s.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			last := ""
			apitest.Eventually(t, "it is ready", func() bool { // its APIServices are registered soon
				code, _, body := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/readyz", "")
				if body != last {
					last = body
					t.Logf("/readyz: %d %s", code, body)
				}
				return code == 200
			})
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if logged := log.All(); strings.Contains(logged, "ended and starts again") {
				t.Errorf("a controller failed: %s", logged)
			}
		})
	}
}
