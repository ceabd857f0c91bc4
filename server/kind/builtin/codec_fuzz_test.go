package builtin_test

import (
	"math/rand"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	admissionregistration "k8s.io/kubernetes/pkg/apis/admissionregistration/fuzzer"
	apps "k8s.io/kubernetes/pkg/apis/apps/fuzzer"
	autoscaling "k8s.io/kubernetes/pkg/apis/autoscaling/fuzzer"
	batch "k8s.io/kubernetes/pkg/apis/batch/fuzzer"
	certificates "k8s.io/kubernetes/pkg/apis/certificates/fuzzer"
	core "k8s.io/kubernetes/pkg/apis/core/fuzzer"
	discoveryfuzzer "k8s.io/kubernetes/pkg/apis/discovery/fuzzer"
	flowcontrol "k8s.io/kubernetes/pkg/apis/flowcontrol/fuzzer"
	networking "k8s.io/kubernetes/pkg/apis/networking/fuzzer"
	policy "k8s.io/kubernetes/pkg/apis/policy/fuzzer"
	rbac "k8s.io/kubernetes/pkg/apis/rbac/fuzzer"
	scheduling "k8s.io/kubernetes/pkg/apis/scheduling/fuzzer"
	storagefuzzer "k8s.io/kubernetes/pkg/apis/storage/fuzzer"

	"github.com/plinth-io/plinth/server/kind"
)

// apiFuzzerFuncs keep random objects within what upstream's conversions can express.
var apiFuzzerFuncs = []fuzzer.FuzzerFuncs{
	core.Funcs, apps.Funcs, batch.Funcs, autoscaling.Funcs, rbac.Funcs, policy.Funcs,
	certificates.Funcs, admissionregistration.Funcs, storagefuzzer.Funcs, networking.Funcs,
	discoveryfuzzer.Funcs, flowcontrol.Funcs, scheduling.Funcs, apiextensions.Funcs,
}

func newSource(seed int64) rand.Source { return rand.NewSource(seed) }

// randomObject is random as in upstream's own round trip tests, and then converted to the
// storage version and back: this fills in defaults and drops what the version cannot express.
func randomObject(t *testing.T, k *kind.Kind, seed int64) runtime.Object {
	t.Helper()
	obj := k.Codec.New()
	fuzz(obj, seed)
	versioned, err := k.Codec.Versioned(obj, k.StoredGVK().GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	obj, err = k.Codec.Hub(versioned)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

var fuzzCodecs = serializer.NewCodecFactory(legacyscheme.Scheme)

func fuzz(obj runtime.Object, seed int64) {
	funcs := fuzzer.MergeFuzzerFuncs(append([]fuzzer.FuzzerFuncs{metafuzzer.Funcs}, apiFuzzerFuncs...)...)
	fuzzer.FuzzerFor(funcs, newSource(seed), fuzzCodecs).Fill(obj)
}
