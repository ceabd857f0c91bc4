package aggregator

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const (
	// pollEvery is how often extension servers are asked what they serve, besides at every
	// change of their objects and after failures; upstream's discovery manager does the same.
	pollEvery   = time.Minute
	pollAgain   = 500 * time.Millisecond // after a failure; it doubles with each, up to pollEvery
	pollAtOnce  = 8                      // servers
	pollTimeout = 5 * time.Second
)

// Version is one group version of an extension server as discovery shows it.
type Version struct {
	Spec *apiregistration.APIServiceSpec // shared
	// Discovery is Stale, and perhaps empty, when the server did not answer the last time.
	Discovery apidiscovery.APIVersionDiscovery
}

// Discovered is what extension servers serve. It is immutable.
type Discovered struct {
	Versions []Version // by group and version
	// Documents are the URLs, without a host, of schemas in OpenAPI v3, by their names in its
	// index: apis/GROUP/VERSION.
	Documents map[string]string
}

// server identifies an extension server, to which several APIServices may lead.
type server struct {
	namespace, name string
	port            int32
}

func (x *Service) server() server {
	ref := x.Object.Spec.Service
	return server{ref.Namespace, ref.Name, portOf(x.Object)}
}

// Discovered returns what the last poll found.
func (s *Services) Discovered() *Discovered { return s.found.Load() }

// Poll asks extension servers what they serve until ctx ends. While there are none it
// waits for the first and costs nothing.
func (s *Services) Poll(ctx context.Context) {
	asked, servers := map[string]*Service{}, map[server]*discovered{}
	for {
		changed := s.Changed()
		var due []*Service
		all := s.List()
		for _, x := range all {
			if d := servers[x.server()]; asked[x.Object.Name] != x || d != nil && !time.Now().Before(d.again) {
				due = append(due, x)
			}
		}
		servers = s.ask(ctx, servers, all, due)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		s.servers = servers
		s.publish()
		s.mu.Unlock()
		clear(asked)
		for _, x := range all {
			asked[x.Object.Name] = x
		}
		select {
		case <-changed:
		case <-next(servers):
		case <-ctx.Done():
			return
		}
	}
}

// next returns a channel that has the time when the next server is due; nil without a server.
func next(servers map[server]*discovered) <-chan time.Time {
	if len(servers) == 0 {
		return nil
	}
	pause := pollEvery
	for _, d := range servers {
		pause = min(pause, time.Until(d.again))
	}
	return time.After(pause)
}

// ask asks the servers whose turn it is. It returns what all servers serve; old is what they
// served before.
func (s *Services) ask(ctx context.Context, old map[server]*discovered, all, due []*Service) map[server]*discovered {
	servers := map[server]*discovered{}
	var group errgroup.Group
	group.SetLimit(pollAtOnce)
	for _, x := range all {
		at := x.server()
		if servers[at] != nil {
			continue
		}
		d := &discovered{}
		if was := old[at]; was != nil {
			*d = *was // the old one may be read
		}
		servers[at] = d
		behind := slices.DeleteFunc(slices.Clone(all), func(y *Service) bool { return y.server() != at })
		if slices.ContainsFunc(behind, func(y *Service) bool { return slices.Contains(due, y) }) {
			group.Go(func() error {
				d.fetch(ctx, behind)
				d.fetchIndex(ctx, behind[0])
				d.plan(s.pollAgain)
				return nil
			})
		}
	}
	_ = group.Wait()
	return servers
}

// publish replaces what Discovered returns, as far as servers have answered. s.mu is held.
func (s *Services) publish() {
	next := &Discovered{Documents: map[string]string{}}
	for _, x := range s.List() {
		if d := s.servers[x.server()]; d != nil && d.documents[x.documentName()] != "" {
			next.Documents[x.documentName()] = d.documents[x.documentName()]
		}
		if x.Object.Spec.Group != "" { // all below /api is the extension server's
			next.Versions = append(next.Versions, s.servers[x.server()].version(x))
		}
	}
	slices.SortFunc(next.Versions, func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.Spec.Group, b.Spec.Group), cmp.Compare(a.Spec.Version, b.Spec.Version))
	})
	if !reflect.DeepEqual(s.found.Load(), next) {
		s.found.Store(next)
	}
}

// discovered is what one server said last.
type discovered struct {
	etag     string // of the aggregated document
	versions map[schema.GroupVersion]apidiscovery.APIVersionDiscovery
	failed   map[schema.GroupVersion]bool

	documents map[string]string // as Discovered has them

	again    time.Time // when the server is asked the next time
	failures int       // how often it has failed in a row
}

// plan sets when the server is asked the next time. first is the pause after the first failure.
func (d *discovered) plan(first time.Duration) {
	pause := pollEvery
	if len(d.failed) == 0 {
		d.failures = 0
	} else {
		pause = min(first<<min(d.failures, 10), pollEvery)
		d.failures++
	}
	d.again = time.Now().Add(pause)
}

// version returns x's part of d, which is nil before the server was asked.
func (d *discovered) version(x *Service) Version {
	if d == nil {
		d = &discovered{}
	}
	gv := groupVersion(x.Object.Name)
	v := Version{Spec: &x.Object.Spec, Discovery: d.versions[gv]}
	v.Discovery.Version = gv.Version
	v.Discovery.Freshness = apidiscovery.DiscoveryFreshnessCurrent
	if d.versions == nil || d.failed[gv] {
		v.Discovery.Freshness = apidiscovery.DiscoveryFreshnessStale
	}
	return v
}
