package ui

import (
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// navGroup is a list of kinds in the navigation.
type navGroup struct {
	Name  string
	Kinds []navKind
}

type navKind struct {
	Resource string // deployments.apps
	Kind     string
}

// Has tells whether a resource is in the group.
func (g navGroup) Has(resource string) bool {
	return slices.ContainsFunc(g.Kinds, func(k navKind) bool { return k.Resource == resource })
}

// navGroups are the kinds that most people look for, in the order in which they are shown.
var navGroups = []struct {
	name  string
	kinds []string
}{
	{"Workloads", []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps", "pods", "replicasets.apps", "jobs.batch", "cronjobs.batch", "horizontalpodautoscalers.autoscaling", "poddisruptionbudgets.policy"}},
	{"Configuration", []string{"configmaps", "secrets", "resourcequotas", "limitranges"}},
	{"Network", []string{"services", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io", "endpointslices.discovery.k8s.io"}},
	{"Storage", []string{"persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"}},
	{"Access", []string{"serviceaccounts", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"}},
	{"Cluster", []string{"namespaces", "nodes", "events", "leases.coordination.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"}},
}

const (
	customKinds = "Custom"
	otherKinds  = "More"
)

// navigation sorts kinds into groups.
func navigation(kinds []past.Served) []navGroup {
	byName := map[string]past.Served{}
	for _, k := range kinds {
		byName[k.Name()] = k
	}
	var groups []navGroup
	for _, g := range navGroups {
		group := navGroup{Name: g.name}
		for _, name := range g.kinds {
			if k, ok := byName[name]; ok {
				group.Kinds = append(group.Kinds, navKind{name, k.Kind.Kind})
				delete(byName, name)
			}
		}
		groups = append(groups, group)
	}
	custom, other := navGroup{Name: customKinds}, navGroup{Name: otherKinds}
	for name, k := range byName {
		group := &other
		if isCustom(k.Resource.Group) {
			group = &custom
		}
		group.Kinds = append(group.Kinds, navKind{name, k.Kind.Kind})
	}
	for _, g := range []navGroup{custom, other} {
		slices.SortFunc(g.Kinds, func(a, b navKind) int { return strings.Compare(a.Kind+a.Resource, b.Kind+b.Resource) })
		groups = append(groups, g)
	}
	return slices.DeleteFunc(groups, func(g navGroup) bool { return len(g.Kinds) == 0 })
}

// isCustom tells whether an API group is none of Kubernetes' own.
func isCustom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// remembered is what the frame of each page needs and asks for at most every few seconds.
type remembered struct {
	namespaces []string // none if the visitor may not list them
	who        string   // the visitor
	failed     error    // why that is not known
	read       time.Time
}

// remember asks for what is older than a few seconds. Several at once may ask, so that none waits for another.
func (c *connection) remember(v *visit) remembered {
	c.mu.Lock()
	known := c.frame
	c.mu.Unlock()
	if time.Since(known.read) < kindsFresh {
		return known
	}
	now := remembered{read: time.Now()}
	var review authenticationv1.SelfSubjectReview
	if now.failed = v.post(&review, &review, "apis", "authentication.k8s.io", "v1", "selfsubjectreviews"); now.failed == nil {
		now.who = review.Status.UserInfo.Username
	}
	var list metav1.PartialObjectMetadataList
	if now.failed == nil && v.get(&list, nil, "api", "v1", "namespaces") == nil {
		for _, item := range list.Items {
			now.namespaces = append(now.namespaces, item.Name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frame = now
	return now
}
