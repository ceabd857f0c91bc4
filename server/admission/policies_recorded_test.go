package admission_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientrest "k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/recordedtest"
)

// TestRecordedPolicies plays the conversations about admission policies. Where the name of an
// exchange begins with "wait", kube-apiserver needed up to a second until a change of a policy
// counted. Here it counts at once.
func TestRecordedPolicies(t *testing.T) {
	files := []string{"policies.txt", "policyrights.txt", "mutatingpolicies.txt"}
	if recordedtest.Recording() {
		for _, file := range files {
			u := recordedtest.StartUpstream(t, "", "--allow-privileged", "--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1alpha1=true")
			playPolicies(t, u.Admin, u.URL, "testdata/recorded/"+file)
		}
		return
	}
	// The gate is the whole process's.
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.MutatingAdmissionPolicy, true)
	t.Run("dialects", func(t *testing.T) {
		logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
			files := files
			if d.Name != "sqlite" {
				files = files[:1] // policies see objects alone, so that one file shows that these come to them
			}
			for _, file := range files {
				playPoliciesOn(t, d.Fresh(t), "testdata/recorded/"+file)
			}
		})
	})
}

func playPoliciesOn(t *testing.T, dsn, file string) {
	srv := server.New(server.Config{
		DSN: dsn, Listen: "127.0.0.1:0", Controllers: []string{},
		RequestTimeout: time.Hour, // a busy machine takes long for an expression's whole budget
		RuntimeConfig:  map[string]string{"admissionregistration.k8s.io/v1alpha1": "true"},
	})
	if err := srv.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	client, err := clientrest.HTTPClientFor(srv.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	playPolicies(t, client, srv.URL(), file)
}

func playPolicies(t *testing.T, client *http.Client, url, file string) {
	for _, e := range recordedtest.Read(t, file) {
		if strings.HasPrefix(e.Name, "wait until the definition is established") {
			apitest.Eventually(t, e.Name, func() bool { return e.Ask(t, client, url).Code == http.StatusOK })
		}
		e.Play(t, client, url)
	}
}
