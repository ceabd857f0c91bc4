package builtin_test

import (
	"math/rand"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	admissionregistration "k8s.io/kubernetes/pkg/apis/admissionregistration/fuzzer"
	apps "k8s.io/kubernetes/pkg/apis/apps/fuzzer"
	autoscaling "k8s.io/kubernetes/pkg/apis/autoscaling/fuzzer"
	batch "k8s.io/kubernetes/pkg/apis/batch/fuzzer"
	certificates "k8s.io/kubernetes/pkg/apis/certificates/fuzzer"
	core "k8s.io/kubernetes/pkg/apis/core/fuzzer"
	discovery "k8s.io/kubernetes/pkg/apis/discovery/fuzzer"
	flowcontrol "k8s.io/kubernetes/pkg/apis/flowcontrol/fuzzer"
	networking "k8s.io/kubernetes/pkg/apis/networking/fuzzer"
	policy "k8s.io/kubernetes/pkg/apis/policy/fuzzer"
	rbac "k8s.io/kubernetes/pkg/apis/rbac/fuzzer"
	scheduling "k8s.io/kubernetes/pkg/apis/scheduling/fuzzer"
	storage "k8s.io/kubernetes/pkg/apis/storage/fuzzer"
)

// apiFuzzerFuncs keep random objects within what upstream's conversions can express.
var apiFuzzerFuncs = []fuzzer.FuzzerFuncs{
	core.Funcs, apps.Funcs, batch.Funcs, autoscaling.Funcs, rbac.Funcs, policy.Funcs,
	certificates.Funcs, admissionregistration.Funcs, storage.Funcs, networking.Funcs,
	discovery.Funcs, flowcontrol.Funcs, scheduling.Funcs, apiextensions.Funcs,
}

func newSource(seed int64) rand.Source { return rand.NewSource(seed) }
