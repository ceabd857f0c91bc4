package controllers

import (
	"context"
	"slices"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"

	"github.com/plinth-io/plinth/server/aggregator"
	"github.com/plinth-io/plinth/server/kind"
)

// preferred lists every resource of set in its preferred version, as ServerPreferredResources of a discovery
// client does. Objects that are in two groups appear once.
func preferred(set *kind.Set, want func(*kind.Kind) bool) []*metav1.APIResourceList {
	byGroupVersion := make(map[schema.GroupVersion]*metav1.APIResourceList)
	seen := make(map[kind.Stored]bool)
	var lists []*metav1.APIResourceList
	for _, k := range set.Kinds {
		if !want(k) || seen[k.Stored] {
			continue // the preferred version or group of the same objects came before
		}
		seen[k.Stored] = true
		gv := schema.GroupVersion{Group: k.Group, Version: k.Versions[0].Name}
		list := byGroupVersion[gv]
		if list == nil {
			list = &metav1.APIResourceList{GroupVersion: gv.String()}
			byGroupVersion[gv] = list
			lists = append(lists, list)
		}
		list.APIResources = append(list.APIResources, apiResource(k, gv.Version))
	}
	return lists
}

// extended adds the namespaced resources of extension servers to lists. As in a discovery client, the error
// names the group versions whose servers did not answer.
func extended(lists []*metav1.APIResourceList, found *aggregator.Discovered) ([]*metav1.APIResourceList, error) {
	var all apidiscovery.APIGroupDiscoveryList
	for _, v := range found.Versions {
		all.Items = append(all.Items, apidiscovery.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: v.Spec.Group}, Versions: []apidiscovery.APIVersionDiscovery{v.Discovery},
		})
	}
	_, byVersion, failed := clientdiscovery.SplitGroupsAndResources(all)
	for _, list := range byVersion {
		list.APIResources = slices.DeleteFunc(list.APIResources, func(r metav1.APIResource) bool { return !r.Namespaced })
		lists = append(lists, list)
	}
	if len(failed) > 0 {
		return lists, &clientdiscovery.ErrGroupDiscoveryFailed{Groups: failed}
	}
	return lists, nil
}

func apiResource(k *kind.Kind, version string) metav1.APIResource {
	return metav1.APIResource{
		Name: k.Resource, SingularName: k.Singular, Kind: k.Kind, Namespaced: k.Namespaced,
		Group: k.Group, Version: version, Verbs: k.Verbs,
	}
}

func namespaced(k *kind.Kind) bool { return k.Namespaced }

// lookAgain is the longest time for which discoveryOnChange waits, so that a failed sync is repeated.
const lookAgain = 30 * time.Second

// discoveryOnChange is the discovery client of a garbage collector, which polls it: the answer waits until
// something has changed.
type discoveryOnChange struct {
	clientdiscovery.ServerResourcesInterface // nil: the collector calls only the method below

	ctx     context.Context
	kinds   *kind.Registry
	changed <-chan struct{} // is closed when the last answer is out of date
}

// ServerPreferredResources has one caller at a time.
func (d *discoveryOnChange) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	if d.changed != nil {
		timer := time.NewTimer(lookAgain)
		defer timer.Stop()
		select {
		case <-d.changed:
		case <-timer.C:
		case <-d.ctx.Done():
			return nil, d.ctx.Err()
		}
	}
	d.changed = d.kinds.Changed() // read before the set, so that no change is missed
	return preferred(d.kinds.Set(), func(*kind.Kind) bool { return true }), nil
}
