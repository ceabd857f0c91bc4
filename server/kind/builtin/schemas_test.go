package builtin

import (
	"bytes"
	"encoding/gob"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/schemaconv"
	builtinopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

var update = flag.Bool("update", false, "write schemas.gob and described.gob anew")

// TestSchemas compares the schemas that are in the program with upstream's, but for what those remember of requests.
func TestSchemas(t *testing.T) {
	for _, c := range []struct {
		file  string
		has   *[]byte
		want  []schema.TypeDef
		least int
	}{
		{"schemas.gob", &schemasGob, appliedTypes(t), 500},
		{"described.gob", &describedGob, describedTypes(t), 50},
	} {
		if *update {
			var b bytes.Buffer
			if err := gob.NewEncoder(&b).Encode(c.want); err != nil {
				t.Fatal(err)
			}
			*c.has = b.Bytes()
			if err := os.WriteFile(c.file, *c.has, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		got, err := readTypes(bytes.NewReader(*c.has))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(schema.Map{})); len(c.want) < c.least || diff != "" {
			t.Errorf("%s is not what upstream has: run go generate ./server/kind/builtin\n%.1000s", c.file, diff)
		}
	}
}

func appliedTypes(t *testing.T) []schema.TypeDef {
	object := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	upstream, err := applyconfigurations.NewTypeConverter(clientscheme.Scheme).ObjectToTyped(object)
	if err != nil {
		t.Fatal(err)
	}
	return upstream.Schema().Types
}

// describedTypes are made of upstream's OpenAPI definitions in the way of managedfields.NewTypeConverter, and sorted by names.
func describedTypes(t *testing.T) []schema.TypeDef {
	var names []string
	for kind, versions := range described {
		for _, v := range versions {
			gvk := kind.WithVersion(v)
			name, err := schemeOf(gvk).ToOpenAPIDefinitionName(gvk)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
	}
	namer := apiopenapi.NewDefinitionNamer(Schemes()...)
	schemas, err := builder3.BuildOpenAPIDefinitionsForResources(&common.OpenAPIV3Config{
		GetDefinitionName: namer.GetDefinitionName,
		GetDefinitions:    builtinopenapi.GetOpenAPIDefinitions,
	}, names...)
	if err != nil {
		t.Fatal(err)
	}
	made, err := schemaconv.ToSchemaFromOpenAPI(schemas, false)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(made.Types, func(a, b schema.TypeDef) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range made.Types {
		if d.Map != nil {
			slices.SortFunc(d.Map.Fields, func(a, b schema.StructField) int { return strings.Compare(a.Name, b.Name) })
		}
	}
	return made.Types
}

// BenchmarkSchemas is what a start has to do.
func BenchmarkSchemas(b *testing.B) {
	for b.Loop() {
		for _, encoded := range [][]byte{schemasGob, describedGob} {
			if _, err := readTypes(bytes.NewReader(encoded)); err != nil {
				b.Fatal(err)
			}
		}
	}
}
