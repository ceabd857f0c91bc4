package admission_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/kubeapiserver/options"

	"github.com/plinth-io/plinth/server/admission"
)

// TestTable holds the table against kube-apiserver's own lists.
func TestTable(t *testing.T) {
	names, off := admission.Known()
	if diff := cmp.Diff(options.AllOrderedPlugins, names); diff != "" {
		t.Errorf("plugins in order: kube-apiserver (-), plinth (+)\n%s", diff)
	}
	slices.Sort(off)
	// NodeRestriction is off in kube-apiserver and on in kubeadm's clusters; here nodes may be out
	// of trust, too.
	upstream := options.DefaultOffAdmissionPlugins().Delete("NodeRestriction")
	if diff := cmp.Diff(sets.List(upstream), off); diff != "" {
		t.Errorf("plugins that are off: kube-apiserver (-), plinth (+)\n%s", diff)
	}
}

// TestOperations checks that a plugin which is not there yet says the same as upstream's of
// which operations it handles, and that each can be made of what there is.
func TestOperations(t *testing.T) {
	admission.EachUpstream(pluginOptions(t), func(name string, ours, upstream apiadmission.Interface, err error) {
		if name == "ImagePolicyWebhook" || name == "OwnerReferencesPermissionEnforcement" || name == "EventRateLimit" {
			return // these are asked for what they need, below
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for _, op := range []apiadmission.Operation{apiadmission.Create, apiadmission.Update, apiadmission.Delete, apiadmission.Connect} {
			if ours.Handles(op) != upstream.Handles(op) {
				t.Errorf("%s handles %s: upstream %v, plinth %v", name, op, upstream.Handles(op), ours.Handles(op))
			}
		}
	})
}
