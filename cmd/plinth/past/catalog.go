package past

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Served is a kind with what the server says of it.
type Served struct {
	Kind
	ShortNames []string
	Scale      bool // it has the subresource scale
}

// All returns all kinds whose objects can be listed, each in the version that the server prefers. With anew it asks the
// server; otherwise the answer may be as old as the Client. Groups that do not answer are left out.
func (k *Kinds) All(anew bool) ([]Served, error) {
	if anew {
		k.forget()
	}
	lists, err := k.discovery.ServerPreferredResources()
	if len(lists) == 0 && err != nil {
		return nil, k.server.unreachable(err)
	}
	scaled := k.scaled()
	var all []Served
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group == historyv1.GroupName {
			continue
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			resource := gv.WithResource(r.Name)
			all = append(all, Served{Kind{resource, r.Kind, r.Namespaced}, r.ShortNames, scaled[resource]})
		}
	}
	return all, nil
}

// scaled returns the resources that have the subresource scale.
func (k *Kinds) scaled() map[schema.GroupVersionResource]bool {
	_, lists, _ := k.discovery.ServerGroupsAndResources()
	all := map[schema.GroupVersionResource]bool{}
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if name, ok := strings.CutSuffix(r.Name, "/scale"); ok {
				all[gv.WithResource(name)] = true
			}
		}
	}
	return all
}
