package admit

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
)

// accountPatience is for how long a pod waits for its namespace's account before upstream's
// plugin looks, which pauses for 0.1 to 0.2 s after each look. A controller in this process
// makes the account within milliseconds of the namespace.
var accountPatience = 100 * time.Millisecond

// awaitAccount returns when the default account of a new pod's namespace is there, or when
// it takes too long.
func awaitAccount(ctx context.Context, o *Options, a admission.Attributes) {
	pod, ok := a.GetObject().(*core.Pod)
	if !ok || a.GetOperation() != admission.Create || pod.Spec.ServiceAccountName != "" && pod.Spec.ServiceAccountName != serviceaccount.DefaultServiceAccountName {
		return
	}
	key := "/registry/core/serviceaccounts/" + a.GetNamespace() + "/" + serviceaccount.DefaultServiceAccountName
	there := func(context.Context) (bool, error) { return o.Store.Get(key) != nil, nil }
	// Whether it is there is for the plugin to say.
	_ = wait.PollUntilContextTimeout(ctx, time.Millisecond, accountPatience, true, there)
}
