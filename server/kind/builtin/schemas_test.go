package builtin

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

var update = flag.Bool("update", false, "write schemas.gob anew")

// TestSchemas compares the schemas that are in the program with upstream's, but for what those remember of requests.
func TestSchemas(t *testing.T) {
	object := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	upstream, err := applyconfigurations.NewTypeConverter(clientscheme.Scheme).ObjectToTyped(object)
	if err != nil {
		t.Fatal(err)
	}
	want := upstream.Schema().Types
	if *update {
		var b bytes.Buffer
		if err := writeTypes(&b, want); err != nil {
			t.Fatal(err)
		}
		schemasGob = b.Bytes()
		if err := os.WriteFile("schemas.gob", schemasGob, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readTypes(bytes.NewReader(schemasGob))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(schema.Map{})); len(want) < 500 || diff != "" {
		t.Errorf("schemas.gob is not what k8s.io/client-go/applyconfigurations has: run go generate ./server/kind/builtin\n%.1000s", diff)
	}
}

// BenchmarkSchemas is what a start has to do.
func BenchmarkSchemas(b *testing.B) {
	for b.Loop() {
		if _, err := readTypes(bytes.NewReader(schemasGob)); err != nil {
			b.Fatal(err)
		}
	}
}
