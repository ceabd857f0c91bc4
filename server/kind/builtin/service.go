package builtin

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	netutils "k8s.io/utils/net"
)

// Services come with fields that depend on each other and on the cluster: cluster IPs,
// their families, node ports. What follows is what kube-apiserver does ahead of its rules
// on a cluster that has IPv4 only, except that nothing is allocated: a Service keeps the
// addresses and ports that its author gave.

// completeNewService is kind.Kind.BeforeCreate.
func completeNewService(_ context.Context, obj runtime.Object) error {
	svc := obj.(*api.Service)
	if svc.Spec.ClusterIP != "" && len(svc.Spec.ClusterIPs) == 0 {
		svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
	}
	return completeFamilies(svc, nil)
}

// completeService is kind.Kind.BeforeUpdate.
func completeService(_ context.Context, obj, old runtime.Object) error {
	svc, before := obj.(*api.Service), old.(*api.Service)
	keepClusterIPs(svc, before)
	keepNodePorts(svc, before)
	matchClusterIPs(svc, before)
	return completeFamilies(svc, before)
}

func hasClusterIP(svc *api.Service) bool { return svc.Spec.Type != api.ServiceTypeExternalName }

func hasNodePorts(svc *api.Service) bool {
	return svc.Spec.Type == api.ServiceTypeNodePort ||
		svc.Spec.Type == api.ServiceTypeLoadBalancer &&
			(svc.Spec.AllocateLoadBalancerNodePorts == nil || *svc.Spec.AllocateLoadBalancerNodePorts)
}

func hasHealthCheckPort(svc *api.Service) bool {
	return svc.Spec.Type == api.ServiceTypeLoadBalancer &&
		svc.Spec.ExternalTrafficPolicy == api.ServiceExternalTrafficPolicyLocal
}

// keepClusterIPs fills in addresses that a client left out of its update.
func keepClusterIPs(svc, before *api.Service) {
	if !hasClusterIP(svc) || !hasClusterIP(before) {
		return
	}
	if svc.Spec.ClusterIP == "" {
		svc.Spec.ClusterIP = before.Spec.ClusterIP
	}
	if len(svc.Spec.ClusterIPs) == 0 {
		svc.Spec.ClusterIPs = slices.Clone(before.Spec.ClusterIPs)
	}
}

// keepNodePorts fills in node ports, by the names of their ports, that a client left out
// of its update and did not give to another port.
func keepNodePorts(svc, before *api.Service) {
	if hasHealthCheckPort(svc) && hasHealthCheckPort(before) && svc.Spec.HealthCheckNodePort == 0 {
		svc.Spec.HealthCheckNodePort = before.Spec.HealthCheckNodePort
	}
	if !hasNodePorts(svc) || !hasNodePorts(before) {
		return
	}
	used := map[int32]bool{}
	for _, p := range svc.Spec.Ports {
		used[p.NodePort] = true
	}
	byName := map[string]int32{}
	for _, p := range before.Spec.Ports {
		byName[p.Name] = p.NodePort
	}
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		if known := byName[p.Name]; p.NodePort == 0 && !used[known] {
			p.NodePort = known
		}
	}
}

// matchClusterIPs makes clusterIPs follow an old client's change of only clusterIP.
func matchClusterIPs(svc, before *api.Service) {
	if svc.Spec.ClusterIP == before.Spec.ClusterIP || !slices.Equal(svc.Spec.ClusterIPs, before.Spec.ClusterIPs) {
		return
	}
	if svc.Spec.ClusterIP == "" {
		svc.Spec.ClusterIPs = nil
		return
	}
	svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
}

// completeFamilies defaults ipFamilyPolicy and ipFamilies and refuses what a cluster
// without IPv6 cannot give. before is nil on create.
func completeFamilies(svc, before *api.Service) error {
	if !hasClusterIP(svc) {
		return nil
	}
	if svc.Spec.IPFamilyPolicy == nil {
		svc.Spec.IPFamilyPolicy = defaultPolicy(svc, before)
	}
	if errs := validation.ValidateServiceClusterIPsRelatedFields(svc, before); len(errs) > 0 {
		return apierrors.NewInvalid(api.Kind("Service"), svc.Name, errs)
	}
	if isHeadless(svc) && len(svc.Spec.Selector) == 0 {
		completeHeadless(svc)
		return nil
	}
	if errs := checkFamilies(svc); len(errs) > 0 {
		return apierrors.NewInvalid(api.Kind("Service"), svc.Name, errs)
	}
	if len(svc.Spec.IPFamilies) == 0 {
		svc.Spec.IPFamilies = []api.IPFamily{api.IPv4Protocol}
	}
	return nil
}

func isHeadless(svc *api.Service) bool { return svc.Spec.ClusterIP == api.ClusterIPNone }

// defaultPolicy never changes the number of stacks without being told to.
func defaultPolicy(svc, before *api.Service) *api.IPFamilyPolicy {
	policy := api.IPFamilyPolicySingleStack
	switch {
	case before != nil && before.Spec.IPFamilyPolicy != nil:
		policy = *before.Spec.IPFamilyPolicy
	case isHeadless(svc) && len(svc.Spec.Selector) == 0:
		policy = api.IPFamilyPolicyRequireDualStack
	}
	return &policy
}

// completeHeadless lets a Service whose endpoints are made by hand have both families on
// any cluster.
func completeHeadless(svc *api.Service) {
	if len(svc.Spec.IPFamilies) == 0 {
		svc.Spec.IPFamilies = []api.IPFamily{api.IPv4Protocol}
	}
	if len(svc.Spec.IPFamilies) == 1 && *svc.Spec.IPFamilyPolicy != api.IPFamilyPolicySingleStack {
		other := api.IPv6Protocol
		if svc.Spec.IPFamilies[0] == api.IPv6Protocol {
			other = api.IPv4Protocol
		}
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, other)
	}
}

func checkFamilies(svc *api.Service) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	for i, ip := range svc.Spec.ClusterIPs {
		if i >= len(svc.Spec.IPFamilies) && netutils.IsIPv6String(ip) {
			errs = append(errs, field.Invalid(spec.Child("clusterIPs").Index(i), svc.Spec.ClusterIPs, "IPv6 is not configured on this cluster"))
		}
	}
	if *svc.Spec.IPFamilyPolicy == api.IPFamilyPolicyRequireDualStack {
		errs = append(errs, field.Invalid(spec.Child("ipFamilyPolicy"), svc.Spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	for i, family := range svc.Spec.IPFamilies {
		if family != api.IPv4Protocol {
			errs = append(errs, field.Invalid(spec.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	return errs
}
