package builtin

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/plinth-io/plinth/server/kind"
)

// Priorities orders the API groups in discovery, for kind.NewRegistry: higher comes first.
// A client that knows only a resource's name takes it from the first group that has it. The
// numbers are kube-apiserver's (groupPriorityMinimum of the APIServices that it registers).
// Groups of custom resources have 1000 there and come last here. apiregistration.k8s.io has
// no number and is always first.
func Priorities() map[string]int {
	return map[string]int{
		"apiregistration.k8s.io":       20000,
		"":                             18000,
		"apps":                         17800,
		"events.k8s.io":                17750,
		"authentication.k8s.io":        17700,
		"authorization.k8s.io":         17600,
		"autoscaling":                  17500,
		"batch":                        17400,
		"certificates.k8s.io":          17300,
		"networking.k8s.io":            17200,
		"extensions":                   17150,
		"policy":                       17100,
		"rbac.authorization.k8s.io":    17000,
		"storage.k8s.io":               16800,
		"admissionregistration.k8s.io": 16700,
		"apiextensions.k8s.io":         16700,
		"scheduling.k8s.io":            16600,
		"coordination.k8s.io":          16500,
		"node.k8s.io":                  16300,
		"discovery.k8s.io":             16200,
		"resource.k8s.io":              16200,
		"flowcontrol.apiserver.k8s.io": 16100,
		"internal.apiserver.k8s.io":    16000,
		"storagemigration.k8s.io":      15800,
		"lifecycle.k8s.io":             15700,

		"history.plinth.io": 1100, // plinth's own, before custom resources
	}
}

// defaultVersionPriority is the versionPriority of nearly all built-in versions that are
// stable, or the most stable of their group.
const defaultVersionPriority = 15

// versionPriorities are the priorities of the other versions.
var versionPriorities = map[schema.GroupVersion]int32{
	{Version: "v1"}:                                        1,
	{Group: "autoscaling", Version: "v2"}:                  30,
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}: 21,

	{Group: "admissionregistration.k8s.io", Version: "v1beta1"}:  12,
	{Group: "admissionregistration.k8s.io", Version: "v1alpha1"}: 9,
	{Group: "certificates.k8s.io", Version: "v1beta1"}:           9,
	{Group: "certificates.k8s.io", Version: "v1alpha1"}:          1,
	{Group: "coordination.k8s.io", Version: "v1beta1"}:           13,
	{Group: "coordination.k8s.io", Version: "v1alpha2"}:          12,
	{Group: "internal.apiserver.k8s.io", Version: "v1alpha1"}:    9,
	{Group: "networking.k8s.io", Version: "v1beta1"}:             9,
	{Group: "lifecycle.k8s.io", Version: "v1alpha1"}:             1,
	{Group: "resource.k8s.io", Version: "v1"}:                    21,
	{Group: "resource.k8s.io", Version: "v1beta1"}:               9,
	{Group: "resource.k8s.io", Version: "v1alpha3"}:              1,
	{Group: "scheduling.k8s.io", Version: "v1beta1"}:             9,
	{Group: "scheduling.k8s.io", Version: "v1alpha3"}:            3,
	{Group: "storage.k8s.io", Version: "v1beta1"}:                9,
	{Group: "storage.k8s.io", Version: "v1alpha1"}:               1,
	{Group: "storagemigration.k8s.io", Version: "v1beta1"}:       9,
}

// APIServices are the objects that kube-apiserver registers for the built-in group versions of
// set, sorted by name (kubernetes/cmd/kube-apiserver/app/aggregator.go). The group
// apiregistration.k8s.io, which has the registrations, is not registered itself.
func APIServices(set *kind.Set) []*apiregistration.APIService {
	priorities := Priorities()
	byName := map[string]*apiregistration.APIService{}
	for _, k := range set.Kinds {
		if k.Custom != nil || k.Group == apiregistration.GroupName {
			continue
		}
		for _, v := range k.Versions {
			gv := schema.GroupVersion{Group: k.Group, Version: v.Name}
			byName[gv.String()] = apiService(gv, priorities[k.Group])
		}
	}
	services := make([]*apiregistration.APIService, 0, len(byName))
	for _, s := range byName {
		services = append(services, s)
	}
	slices.SortFunc(services, func(a, b *apiregistration.APIService) int { return strings.Compare(a.Name, b.Name) })
	return services
}

func apiService(gv schema.GroupVersion, group int) *apiregistration.APIService {
	version := versionPriorities[gv]
	if version == 0 {
		version = defaultVersionPriority
	}
	return &apiregistration.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group},
		Spec: apiregistration.APIServiceSpec{
			Group: gv.Group, Version: gv.Version,
			GroupPriorityMinimum: int32(group), VersionPriority: version,
		},
	}
}
