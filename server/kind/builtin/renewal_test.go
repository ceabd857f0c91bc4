package builtin

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/utils/ptr"
)

// TestRenewalMayWait changes a Lease, and looks whether that may wait: only what says no more than that
// the holder is there.
func TestRenewalMayWait(t *testing.T) {
	begun := time.Unix(1e9, 0)
	at := func(after time.Duration) *metav1.MicroTime { return ptr.To(metav1.NewMicroTime(begun.Add(after))) }
	old := func() *coordination.Lease {
		wrote := metav1.NewTime(begun)
		return &coordination.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name: "node-1", Namespace: "kube-node-lease", UID: "u", ResourceVersion: "5", Labels: map[string]string{"a": "b"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: "Update", Time: &wrote, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}},
			},
			Spec: coordination.LeaseSpec{HolderIdentity: ptr.To("node-1"), LeaseDurationSeconds: ptr.To(int32(40)), LeaseTransitions: ptr.To(int32(3)), RenewTime: at(0)},
		}
	}
	later := func(l *coordination.Lease) { l.Spec.RenewTime = at(10 * time.Second) }
	for _, c := range []struct {
		what   string
		change func(*coordination.Lease)
		want   time.Duration
	}{
		{"a renewal", func(*coordination.Lease) {}, 4 * time.Second},
		{"with its resourceVersion and times", func(l *coordination.Lease) {
			l.ResourceVersion = ""
			l.ManagedFields[0].Time = ptr.To(metav1.NewTime(begun.Add(time.Hour)))
		}, 4 * time.Second},
		{"an earlier renewTime", func(l *coordination.Lease) { l.Spec.RenewTime = at(-time.Second) }, 0},
		{"the same renewTime", func(l *coordination.Lease) { l.Spec.RenewTime = at(0) }, 0},
		{"no renewTime", func(l *coordination.Lease) { l.Spec.RenewTime = nil }, 0},
		{"another holder", func(l *coordination.Lease) { l.Spec.HolderIdentity = ptr.To("node-2") }, 0},
		{"no holder", func(l *coordination.Lease) { l.Spec.HolderIdentity = nil }, 0},
		{"a holder that gives it up", func(l *coordination.Lease) { l.Spec.HolderIdentity = ptr.To("") }, 0},
		{"another transition", func(l *coordination.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(4)) }, 0},
		{"another duration", func(l *coordination.Lease) { l.Spec.LeaseDurationSeconds = ptr.To(int32(1)) }, 0},
		{"no duration", func(l *coordination.Lease) { l.Spec.LeaseDurationSeconds = nil }, 0},
		{"a preferred holder", func(l *coordination.Lease) { l.Spec.PreferredHolder = ptr.To("node-2") }, 0},
		{"a label", func(l *coordination.Lease) { l.Labels = map[string]string{"a": "c"} }, 0},
		{"a finalizer", func(l *coordination.Lease) { l.Finalizers = []string{"example.com/a"} }, 0},
		{"another manager", func(l *coordination.Lease) { l.ManagedFields[0].Manager = "kubectl" }, 0},
		{"other managed fields", func(l *coordination.Lease) { l.ManagedFields[0].FieldsV1.SetRawString(`{"f:metadata":{}}`) }, 0},
	} {
		obj := old()
		later(obj)
		c.change(obj)
		before := old()
		if got := renewalMayWait(obj, before); got != c.want {
			t.Errorf("%s: may wait for %v, want %v", c.what, got, c.want)
		}
		if before.ManagedFields[0].Time == nil || obj.ManagedFields[0].Time == nil {
			t.Errorf("%s: managed fields have lost their times", c.what)
		}
	}
	abandoned := old()
	abandoned.Spec.HolderIdentity = ptr.To("")
	obj := abandoned.DeepCopy()
	later(obj)
	if got := renewalMayWait(obj, abandoned); got != 0 {
		t.Errorf("a Lease that nobody holds: may wait for %v", got)
	}
	abandoned.Spec.HolderIdentity, abandoned.Spec.RenewTime = ptr.To("node-1"), nil
	obj = old()
	later(obj)
	if got := renewalMayWait(obj, abandoned); got != 0 {
		t.Errorf("the first renewal: may wait for %v", got)
	}
}
