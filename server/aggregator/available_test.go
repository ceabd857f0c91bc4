package aggregator

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
)

// openAvailability has one APIService in the API and in Services.
func openAvailability(t *testing.T, name string) (*fixture, *availability) {
	t.Helper()
	f := openFixture(t)
	f.a.remote.Put(f.create(remote(name)))
	v := &availability{
		a: f.a, seen: map[string]looked{},
		names: reconcile.NewQueue(checkAgainFirst, checkEvery),
	}
	t.Cleanup(v.names.ShutDown)
	return f, v
}

var (
	serviceKey   = lister.ServicePrefix + "ns/ext"
	endpointsKey = lister.EndpointsPrefix + "ns/ext"
	sliceKey     = lister.SlicePrefix + "ns/ext-abc"
)

const (
	clusterIP    = `{"metadata":{"name":"ext","namespace":"ns"},"spec":{"type":"ClusterIP","ports":[{"name":"https","port":443}]}}`
	otherPort    = `{"metadata":{"name":"ext","namespace":"ns"},"spec":{"type":"ClusterIP","ports":[{"name":"https","port":8443}]}}`
	externalName = `{"metadata":{"name":"ext","namespace":"ns"},"spec":{"type":"ExternalName","externalName":"ext.example.com"}}`
	ready        = `{"metadata":{"name":"ext","namespace":"ns"},"subsets":[{"addresses":[{"ip":"192.0.2.1"}],"ports":[{"name":"https","port":8443}]}]}`
	notReady     = `{"metadata":{"name":"ext","namespace":"ns"},"subsets":[{"notReadyAddresses":[{"ip":"192.0.2.1"}],"ports":[{"name":"https","port":8443}]}]}`
	readySlice   = `{"metadata":{"name":"ext-abc","namespace":"ns","labels":{"kubernetes.io/service-name":"ext"}},"addressType":"IPv4",
		"endpoints":[{"addresses":["192.0.2.1"],"conditions":{"ready":true}}],"ports":[{"name":"https","port":8443}]}`
)

// TestCheck checks one extension server. The Service, its port, its endpoints and the server are
// looked at in this order, and the condition Available says in upstream's words what is missing.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name    string
		objects map[string]string // by key
		answer  int64
		want    string
	}{
		{"no Service", nil, 200, `False ServiceNotFound: service/ext in "ns" is not present`},
		{"another port", map[string]string{serviceKey: otherPort}, 200, `False ServicePortError: service/ext in "ns" is not listening on port 443`},
		{"no endpoints", map[string]string{serviceKey: clusterIP}, 200, `False EndpointsNotFound: cannot find endpointslices for service/ext in "ns"`},
		{"no endpoint is ready", map[string]string{serviceKey: clusterIP, endpointsKey: notReady}, 200,
			`False MissingEndpoints: endpointslices for service/ext in "ns" have no addresses with port name "https"`},
		{"an error", map[string]string{serviceKey: clusterIP, endpointsKey: ready}, 503, "False FailedDiscoveryCheck: failing or missing response from"},
		{"a redirection", map[string]string{serviceKey: clusterIP, endpointsKey: ready}, 302, "False FailedDiscoveryCheck: failing or missing response from"},
		{"Endpoints", map[string]string{serviceKey: clusterIP, endpointsKey: ready}, 200, "True Passed: all checks passed"},
		{"an EndpointSlice", map[string]string{serviceKey: clusterIP, sliceKey: readySlice}, 200, "True Passed: all checks passed"},
		{"an external name needs no endpoints", map[string]string{serviceKey: externalName}, 200, "True Passed: all checks passed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			const name = "v1.example.com"
			f, v := openAvailability(t, name)
			for key, json := range test.objects {
				f.put(key, json)
			}
			f.answer.Store(test.answer)
			err := v.check(t.Context(), name)
			// Only the server itself is asked again: all else comes by as a change.
			if again := test.answer != http.StatusOK; errors.Is(err, errUnavailable) != again || !again && err != nil {
				t.Errorf("error %v", err)
			}
			conditions := f.get(name).Status.Conditions
			if len(conditions) != 1 {
				t.Fatalf("conditions %v", conditions)
			}
			c := conditions[0]
			if got := string(c.Status) + " " + c.Reason + ": " + c.Message; !strings.HasPrefix(got, test.want) {
				t.Errorf("Available is %s, want %s", got, test.want)
			}
			// The condition is written when it changes and not with each check: a write would fail
			// now, because the object is deleted.
			f.a.remote.Put(f.get(name))
			f.delete(name)
			if err := v.check(t.Context(), name); test.answer == http.StatusOK && err != nil {
				t.Errorf("a second check wrote the condition again: %v", err)
			}
		})
	}
}

// A server whose certificate nobody vouches for is not available.
func TestCheckCertificate(t *testing.T) {
	const name = "v1.example.com"
	f := openFixture(t)
	object := remote(name)
	object.Spec.InsecureSkipTLSVerify = false
	f.a.remote.Put(object)
	if err := f.a.remote.Find(name).check(t.Context()); err == nil || !strings.Contains(err.Error(), "failed to verify certificate") {
		t.Errorf("the check of a server with an unknown certificate: %v", err)
	}
	object = remote(name)
	f.a.remote.Put(object)
	if err := f.a.remote.Find(name).check(t.Context()); err != nil {
		t.Errorf("the check of a server whose certificate does not matter: %v", err)
	}
}

// If an APIService was changed meanwhile, its condition is not written and the check is made
// again. If it was removed, nothing is done.
func TestCheckOvertaken(t *testing.T) {
	const name = "v1.example.com"
	f, v := openAvailability(t, name)
	f.patch(name, `{"metadata":{"labels":{"a":"b"}}}`)
	if err := v.check(t.Context(), name); !errors.Is(err, errUnavailable) || f.available(name) != "" {
		t.Errorf("changed: %v, condition %q", err, f.available(name))
	}
	f.a.remote.Remove(name)
	if err := v.check(t.Context(), name); err != nil {
		t.Errorf("removed: %v", err)
	}
}

// A change of a Service or of its endpoints has the group versions behind it checked.
func TestAddressChanged(t *testing.T) {
	f, v := openAvailability(t, "v1.example.com")
	f.a.remote.Put(remote("v2.example.com"))
	other := remote("v1.other.example.com")
	other.Spec.Service.Name = "other"
	f.a.remote.Put(other)
	both, none := []string{"v1.example.com", "v2.example.com"}, []string{}
	for _, test := range []struct {
		prefix, key, json string
		want              []string
	}{
		{lister.ServicePrefix, serviceKey, clusterIP, both},
		{lister.EndpointsPrefix, endpointsKey, ready, both},
		{lister.SlicePrefix, sliceKey, readySlice, both},
		{lister.ServicePrefix, lister.ServicePrefix + "ns/nobody", `{"metadata":{"name":"nobody","namespace":"ns"}}`, none},
		{lister.ServicePrefix, lister.ServicePrefix + "elsewhere/ext", `{"metadata":{"name":"ext","namespace":"elsewhere"}}`, none},
		{lister.SlicePrefix, lister.SlicePrefix + "ns/unlabelled", `{"metadata":{"name":"unlabelled","namespace":"ns"}}`, none},
	} {
		ev := f.put(test.key, test.json)
		v.addressChanged(test.prefix, ev)
		if diff := cmp.Diff(test.want, queued(v.names)); diff != "" {
			t.Errorf("%s: checked (-want +got):\n%s", test.key, diff)
		}
		v.addressChanged(test.prefix, &sqlstore.Event{Type: sqlstore.Delete, Entry: ev.Entry, Prev: ev.Entry})
		if diff := cmp.Diff(test.want, queued(v.names)); diff != "" {
			t.Errorf("%s deleted: checked (-want +got):\n%s", test.key, diff)
		}
	}
}

// slowStatus has writes of the status of one APIService wait, and ignores the end of their context.
type slowStatus struct {
	http.RoundTripper
	path          string
	begun, goesOn chan struct{}
}

func (s slowStatus) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, s.path) {
		close(s.begun)
		<-s.goesOn
	}
	return s.RoundTripper.RoundTrip(r)
}

// An APIService that comes while the checks of the last one are about to end is checked too.
func TestWatchOverAgain(t *testing.T) {
	f := openFixture(t)
	slow := slowStatus{f.api.Config.Transport, "/v1.example.com/status", make(chan struct{}), make(chan struct{})}
	f.api.Config.Transport = slow
	a := f.restart(f.a.remote)
	first, next := f.create(remote("v1.example.com")), f.create(remote("v2.example.com"))
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { a.watchOver(ctx) })
	a.remote.Put(first)
	<-slow.begun
	watchers := func(n int64) func() bool { return func() bool { return f.api.Store.Stats().Watchers == n } }
	apitest.Eventually(t, "addresses are followed", watchers(3))
	a.remote.Remove(first.Name)
	apitest.Eventually(t, "addresses are followed no more: only the write of the status goes on", watchers(0))
	a.remote.Put(next)
	close(slow.goesOn)
	apitest.Eventually(t, "the next one is checked", func() bool { return f.available(next.Name) != "" })
}
