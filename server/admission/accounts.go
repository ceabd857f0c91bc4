package admission

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"

	"github.com/plinth-io/plinth/sqlstore/object"
)

// accountPatience is how long a pod waits for its namespace's account before upstream's
// plugin looks for it. That plugin pauses for 0.1 to 0.2 s after each look, whereas a
// controller in this process creates the account milliseconds after the namespace.
var accountPatience = 100 * time.Millisecond

// awaitAccount returns when the default account of a new pod's namespace exists, or after
// accountPatience.
func awaitAccount(ctx context.Context, o *Options, a apiadmission.Attributes) {
	pod, ok := a.GetObject().(*core.Pod)
	if !ok || a.GetOperation() != apiadmission.Create || pod.Spec.ServiceAccountName != "" && pod.Spec.ServiceAccountName != serviceaccount.DefaultServiceAccountName {
		return
	}
	key := object.Key(object.Prefix("", "serviceaccounts"), a.GetNamespace(), serviceaccount.DefaultServiceAccountName)
	there := func(context.Context) (bool, error) { return o.Store.Get(key) != nil, nil }
	// The plugin answers if the account does not exist.
	_ = wait.PollUntilContextTimeout(ctx, time.Millisecond, accountPatience, true, there)
}
