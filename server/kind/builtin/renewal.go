package builtin

import (
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/coordination"
)

// renewalShare is which part of a Lease's duration its renewal may wait. Who looks at a Lease allows
// for more, or would take holders for dead that are only slow.
const renewalShare = 10

// renewalMayWait is the hook kind.Hooks.MayWait of Leases: a renewal by the holder says nothing but that
// the holder is there, so that it may be stored a little later.
func renewalMayWait(obj, old runtime.Object) time.Duration {
	lease, ok := obj.(*coordination.Lease)
	before, was := old.(*coordination.Lease)
	if !ok || !was || !renews(lease, before) {
		return 0
	}
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second / renewalShare
}

// renews tells whether lease differs from before in its later renewTime only, and in what follows from
// that: its resourceVersion, and the times in its managed fields.
func renews(lease, before *coordination.Lease) bool {
	if held := lease.Spec.HolderIdentity; held == nil || *held == "" || lease.Spec.LeaseDurationSeconds == nil {
		return false
	}
	if lease.Spec.RenewTime == nil || before.Spec.RenewTime == nil || !before.Spec.RenewTime.Before(lease.Spec.RenewTime) {
		return false
	}
	return apiequality.Semantic.DeepEqual(besidesRenewal(lease), besidesRenewal(before))
}

// besidesRenewal returns what a renewal leaves as it is. It shares memory with lease.
func besidesRenewal(lease *coordination.Lease) *coordination.Lease {
	rest := *lease
	rest.Spec.RenewTime = nil
	rest.ResourceVersion = ""
	rest.ManagedFields = slices.Clone(rest.ManagedFields)
	for i := range rest.ManagedFields {
		rest.ManagedFields[i].Time = nil
	}
	return &rest
}
