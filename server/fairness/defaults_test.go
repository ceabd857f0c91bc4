package fairness

import (
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/utils/ptr"
)

// Every default object is made, gets its condition, and is not written again.
func TestDefaults(t *testing.T) {
	e := open(t)
	schemas := len(bootstrap.MandatoryFlowSchemas) + len(bootstrap.SuggestedFlowSchemas)
	e.eventually("not every FlowSchema has the condition that its level exists", func() bool {
		all, err := e.client.FlowSchemas().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		known := 0
		for _, fs := range all.Items {
			for _, c := range fs.Status.Conditions {
				if c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status == flowcontrolv1.ConditionFalse && c.Reason == "Found" {
					known++
				}
			}
		}
		return len(all.Items) == schemas && known == schemas
	})
	before := e.api.Store.Revision()
	if err := e.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := e.api.Store.Revision(); after != before {
		t.Errorf("%d writes although nothing had changed", after-before)
	}
}

// A default object that is missing is made again; what somebody changed stays if the annotation says
// so; an object of an earlier release goes.
func TestDefaultsAreKept(t *testing.T) {
	e := open(t)
	levels, ctx := e.client.PriorityLevelConfigurations(), t.Context()
	change := func(name string, f func(*flowcontrolv1.PriorityLevelConfiguration)) {
		t.Helper()
		pl, err := levels.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f(pl)
		if _, err := levels.Update(ctx, pl, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	lend := func(percent int32) func(*flowcontrolv1.PriorityLevelConfiguration) {
		return func(pl *flowcontrolv1.PriorityLevelConfiguration) {
			if pl.Spec.Exempt != nil {
				pl.Spec.Exempt.LendablePercent = ptr.To(percent)
			} else {
				pl.Spec.Limited.LendablePercent = ptr.To(percent)
			}
		}
	}
	change("workload-low", func(pl *flowcontrolv1.PriorityLevelConfiguration) {
		lend(33)(pl)
		metav1.SetMetaDataAnnotation(&pl.ObjectMeta, flowcontrolv1.AutoUpdateAnnotationKey, "false")
	})
	change("global-default", lend(34))
	if err := levels.Delete(ctx, "node-high", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	old := bootstrap.SuggestedPriorityLevelConfigurationSystem.DeepCopy()
	old.Name, old.Annotations = "of-old", map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: "true"}
	if _, err := levels.Create(ctx, old, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := e.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int32{
		"workload-low": 33, "global-default": *bootstrap.SuggestedPriorityLevelConfigurationGlobalDefault.Spec.Limited.LendablePercent,
		"node-high": *bootstrap.SuggestedPriorityLevelConfigurationNodeHigh.Spec.Limited.LendablePercent,
	} {
		pl, err := levels.Get(ctx, name, metav1.GetOptions{})
		if err != nil || ptr.Deref(pl.Spec.Limited.LendablePercent, 0) != want {
			t.Errorf("%s: lends %v, want %d (%v)", name, pl.Spec.Limited, want, err)
		}
	}
	if _, err := levels.Get(ctx, "of-old", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object of an earlier release: %v", err)
	}
}

// A FlowSchema without its level says so, and matches nothing.
func TestDangling(t *testing.T) {
	e := open(t)
	e.createSchema("lost", "nowhere", "ann")
	e.eventually("no condition that the level is missing", func() bool {
		fs, err := e.client.FlowSchemas().Get(t.Context(), "lost", metav1.GetOptions{})
		return err == nil && len(fs.Status.Conditions) == 1 && fs.Status.Conditions[0].Status == flowcontrolv1.ConditionTrue && fs.Status.Conditions[0].Reason == "NotFound"
	})
	if a := e.ask(ann, get); a.level != e.uid("global-default") {
		t.Errorf("level %s", a.level)
	}
}
