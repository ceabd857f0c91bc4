package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/transport"
)

// maxDocument bounds the size of an extension server's documents.
const maxDocument = 32 << 20

var aggregatedKind = schema.GroupVersionKind{Group: "apidiscovery.k8s.io", Version: "v2", Kind: "APIGroupDiscoveryList"}

// fetch asks the extension server of services for its aggregated discovery document, or, if
// it has none, for the document of each group version. When that fails the old ones stay.
func (d *discovered) fetch(ctx context.Context, services []*Service) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	aggregated, err := d.fetchAggregated(ctx, services[0])
	if aggregated {
		d.failed = nil
		return
	}
	versions, failed := map[schema.GroupVersion]apidiscovery.APIVersionDiscovery{}, map[schema.GroupVersion]bool{}
	for _, x := range services {
		gv := groupVersion(x.Object.Name)
		v := d.versions[gv]
		bad := err != nil
		if !bad {
			v, bad = x.fetchVersion(ctx, v)
		}
		if versions[gv] = v; bad {
			failed[gv] = true
		}
	}
	d.versions, d.failed = versions, failed
	if err == nil {
		d.etag = ""
	}
}

// fetchAggregated returns false and no error for a server that has only the classic
// documents.
func (d *discovered) fetchAggregated(ctx context.Context, x *Service) (bool, error) {
	answer, err := x.get(ctx, "/apis", http.Header{
		"Accept": {clientdiscovery.AcceptV2}, "If-None-Match": {d.etag},
	})
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusNotModified:
		return d.etag != "", nil
	case http.StatusServiceUnavailable:
		return false, fmt.Errorf("get /apis: %s", answer.Status)
	}
	isAggregated, _ := clientdiscovery.ContentTypeIsGVK(answer.Header.Get("Content-Type"), aggregatedKind)
	if answer.StatusCode != http.StatusOK || !isAggregated {
		return false, nil
	}
	var list apidiscovery.APIGroupDiscoveryList
	if err := decodeBody(answer, &list); err != nil {
		return false, err
	}
	d.versions = map[schema.GroupVersion]apidiscovery.APIVersionDiscovery{}
	for _, g := range list.Items {
		for _, v := range g.Versions {
			complete(v.Resources)
			d.versions[schema.GroupVersion{Group: g.Name, Version: v.Version}] = v
		}
	}
	d.etag = answer.Header.Get("ETag")
	return true, nil
}

// complete fills in the kinds that are missing, because some clients need them
// (https://github.com/kubernetes/kubernetes/issues/118361).
func complete(resources []apidiscovery.APIResourceDiscovery) {
	for i := range resources {
		r := &resources[i]
		if r.ResponseKind == nil {
			r.ResponseKind = &metav1.GroupVersionKind{}
		}
		for j := range r.Subresources {
			if r.Subresources[j].ResponseKind == nil {
				r.Subresources[j].ResponseKind = &metav1.GroupVersionKind{}
			}
		}
	}
}

// fetchVersion returns old if the server's document is missing or bad.
func (x *Service) fetchVersion(ctx context.Context, old apidiscovery.APIVersionDiscovery) (_ apidiscovery.APIVersionDiscovery, failed bool) {
	answer, err := x.get(ctx, documentPath(x.Object), http.Header{"Accept": {"application/json"}})
	if err != nil {
		return old, true
	}
	defer answer.Body.Close()
	var list metav1.APIResourceList
	if answer.StatusCode != http.StatusOK || decodeBody(answer, &list) != nil {
		return old, true
	}
	resources, err := endpoints.ConvertGroupVersionIntoToDiscovery(list.APIResources)
	if err != nil {
		return old, true
	}
	return apidiscovery.APIVersionDiscovery{Resources: resources}, false
}

func decodeBody(answer *http.Response, into any) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// get makes a request as the aggregator. The error says that the server cannot be reached.
func (x *Service) get(ctx context.Context, path string, headers http.Header) (*http.Response, error) {
	if x.target.err != nil {
		return nil, x.target.err
	}
	location, err := x.location(path)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return nil, err
	}
	for name, values := range headers {
		if values[0] != "" {
			r.Header[name] = values
		}
	}
	transport.SetAuthProxyHeaders(r, aggregator, "", []string{user.SystemPrivilegedGroup}, nil)
	return x.target.transport.RoundTrip(r)
}
