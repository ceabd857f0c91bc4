package discovery

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
)

// aggregatedOnly accepts only media types that ask for the aggregated form.
type aggregatedOnly struct{}

func (aggregatedOnly) AllowsMediaTypeTransform(_, _ string, gvk *schema.GroupVersionKind) bool {
	return gvk != nil && *gvk == apidiscovery.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")
}

func (aggregatedOnly) AllowsServerVersion(string) bool  { return false }
func (aggregatedOnly) AllowsStreamSchema(s string) bool { return s == "watch" }

func newList() *apidiscovery.APIGroupDiscoveryList {
	return &apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{
		Kind: "APIGroupDiscoveryList", APIVersion: apidiscovery.SchemeGroupVersion.String(),
	}}
}

// serveAggregated answers with everything below path. The tag lets a client that has the
// document already skip its body.
func (d *documents) serveAggregated(w http.ResponseWriter, r *http.Request, path string, as schema.GroupVersionKind, info runtime.SerializerInfo) error {
	list := d.aggregated[path]
	tag, err := d.etag(path, list)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "public")
	w.Header().Set("Vary", "Accept") // the same URL has two answers
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	doc := document{path: path, aggregated: true, encoder: info.Serializer.Identifier()}
	body, err := d.encode(doc, info, list)
	if err != nil {
		return err
	}
	return respond(w, info.MediaType+";g="+as.Group+";v="+as.Version+";as="+as.Kind, body)
}

// etag depends on the content alone, so that it is the same on every replica and after a
// restart.
func (d *documents) etag(path string, list *apidiscovery.APIGroupDiscoveryList) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if tag, ok := d.etags[path]; ok {
		return tag, nil
	}
	b, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", path, err)
	}
	tag := strconv.Quote(fmt.Sprintf("%X", sha512.Sum512(b)))
	d.etags[path] = tag
	return tag, nil
}

// aggregate is one version of the group in the aggregated document.
func (g *group) aggregate(v string) apidiscovery.APIVersionDiscovery {
	out := apidiscovery.APIVersionDiscovery{Version: v, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
	for _, k := range g.kinds {
		if k.Version(v) != nil {
			out.Resources = append(out.Resources, aggregateKind(k, v))
		}
	}
	return out
}

// aggregateKind leaves group and version out of responseKind where they are the path's, as
// upstream does for built-in resources, but not for custom ones.
func aggregateKind(k *kind.Kind, version string) apidiscovery.APIResourceDiscovery {
	path := metav1.GroupVersionKind{}
	if k.Custom != nil {
		path.Group, path.Version = k.Group, version
	}
	r := apidiscovery.APIResourceDiscovery{
		Resource:         k.Resource,
		ResponseKind:     &metav1.GroupVersionKind{Group: path.Group, Version: path.Version, Kind: k.Kind},
		Scope:            apidiscovery.ScopeCluster,
		SingularResource: k.Singular,
		Verbs:            verbs(k),
		ShortNames:       k.ShortNames,
		Categories:       k.Categories,
	}
	if k.Namespaced {
		r.Scope = apidiscovery.ScopeNamespace
	}
	for _, s := range subresources(k) {
		body := metav1.GroupVersionKind{Group: s.GVK.Group, Version: s.GVK.Version, Kind: bodyKind(k, s)}
		if !foreign(k, s) {
			body.Group, body.Version = path.Group, path.Version
		}
		r.Subresources = append(r.Subresources, apidiscovery.APISubresourceDiscovery{
			Subresource:  s.Name,
			ResponseKind: &body,
			Verbs:        s.Verbs,
		})
	}
	return r
}
