package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The default ServiceCIDR has the ranges of the server's flags. As in kube-apiserver, it is created if it is
// missing, and gets a second family if the flags have got one. Any other difference from the flags is only
// reported. https://kubernetes.io/docs/reference/networking/virtual-ips/#ip-address-objects
const (
	cidrName    = "kubernetes"
	cidrManager = "kubernetes-service-cidr-controller"
)

var cidrObject = corev1.ObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "ServiceCIDR", Name: cidrName}

func (c *clients) ensureServiceCIDR(ctx context.Context, ranges []*net.IPNet) error {
	client, want := c.networking.ServiceCIDRs(), cidrsOf(ranges)
	now, err := client.Get(ctx, cidrName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: cidrName},
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: want},
		}, metav1.CreateOptions{})
	} else if err == nil && len(want) == 2 && len(now.Spec.CIDRs) == 1 && now.Spec.CIDRs[0] == want[0] {
		now.Spec.CIDRs = want
		_, err = client.Update(ctx, now, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) { // another server
		err = nil
	}
	return orExists("ServiceCIDR "+cidrName, err)
}

// ensureServiceCIDRReady sets the condition that upstream's controller of ServiceCIDRs would
// set, so that the ranges can be used in clusters where that controller does not run.
func (c *clients) ensureServiceCIDRReady(ctx context.Context, ranges []*net.IPNet) error {
	now, err := c.networking.ServiceCIDRs().Get(ctx, cidrName, metav1.GetOptions{})
	if err != nil || now.DeletionTimestamp != nil {
		return orGone("ServiceCIDR "+cidrName, err)
	}
	ready := meta.FindStatusCondition(now.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	same := slices.Equal(now.Spec.CIDRs, cidrsOf(ranges))
	switch {
	case ready != nil && ready.Status != metav1.ConditionTrue:
		return c.reportFault(ctx, cidrObject, ready.Reason, ready.Message)
	case !same:
		return c.reportFault(ctx, cidrObject, "KubernetesDefaultServiceCIDRInconsistent",
			fmt.Sprintf("The default ServiceCIDR %v does not match the flag configurations %v", now.Spec.CIDRs, cidrsOf(ranges)))
	case ready != nil:
		return nil
	}
	meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{
		Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue,
		Message: "Kubernetes default Service CIDR is ready",
	})
	// This is an update and not an apply, because a server that tracks no fields refuses applies.
	_, err = c.networking.ServiceCIDRs().UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: cidrManager})
	if apierrors.IsConflict(err) { // another server, or the next round
		return nil
	}
	return orGone("ServiceCIDR "+cidrName, err)
}

func cidrsOf(ranges []*net.IPNet) (list []string) {
	for _, r := range ranges {
		list = append(list, r.String())
	}
	return list
}

// orGone returns nil if the object is missing, because the next round creates it again.
func orGone(what string, err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
