package policies_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plinth-io/plinth/server/admission/policies"
	"github.com/plinth-io/plinth/server/apitest"
)

// newUpstream returns upstream's own plugin, with informers, when it knows all policies.
func newUpstream(t testing.TB, a *apitest.API) apiadmission.ValidationInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(a.Config)
	if err != nil {
		t.Fatal(err)
	}
	factory, stop := informers.NewSharedInformerFactory(a.Client, 0), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		factory.Shutdown()
	})
	p, err := validating.NewPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.SetExternalKubeInformerFactory(factory)
	p.SetExternalKubeClientSet(a.Client)
	p.SetRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme))
	p.SetDynamicClient(client)
	p.SetDrainedNotification(stop)
	p.SetUnconditionalAuthorizer(authorizerfactory.NewAlwaysAllowAuthorizer())
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	factory.Start(stop)
	if !p.WaitForReady() {
		t.Fatal("upstream's plugin is not ready")
	}
	return p
}

// BenchmarkValidating asks plinth's plugin and upstream's about the create of a ConfigMap.
func BenchmarkValidating(b *testing.B) {
	for _, c := range []struct {
		name             string
		matching, others int
	}{{"none", 0, 0}, {"one", 1, 0}, {"one other", 0, 1}, {"200 others", 0, 200}, {"200", 200, 0}} {
		a := apitest.Open(b)
		inDefault(b, a.Client)
		for i := range c.matching {
			name := fmt.Sprint("m", i)
			putPolicy(b, a.Client, newPolicy(name, "configmaps", "!has(object.data) || object.data.size() < 3"), newBinding(name))
		}
		for i := range c.others {
			name := fmt.Sprint("o", i)
			putPolicy(b, a.Client, newPolicy(name, "secrets", "!has(object.data) || object.data.size() < 3"), newBinding(name))
		}
		for _, p := range []struct {
			name   string
			plugin apiadmission.ValidationInterface
		}{{"plinth", newValidating(b, a)}, {"upstream", newUpstream(b, a)}} {
			b.Run(c.name+"/"+p.name, func(b *testing.B) {
				attributes := createOf(nil)
				b.ReportAllocs()
				for b.Loop() {
					if err := p.plugin.Validate(b.Context(), attributes, interfaces); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCompile is the first write that a policy matches.
func BenchmarkCompile(b *testing.B) {
	for _, c := range []struct {
		name      string
		variables bool
	}{{"plain", false}, {"with variables", true}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				policies.Compile(c.variables)
			}
		})
	}
}
