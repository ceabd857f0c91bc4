package builtin_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
)

var configMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default",` +
	`"uid":"7a1f4c0e-2a8c-4a55-9d0b-6d4f2f2d7b1e","creationTimestamp":"2024-05-01T10:00:00Z","labels":{"app":"a"}},` +
	`"data":{"key":"` + strings.Repeat("x", 1024) + `"}}`

func BenchmarkDecode(b *testing.B) {
	k := find(b, "", "configmaps")
	def, body := k.GVK("v1"), []byte(configMap)
	for name, strict := range map[string]bool{"lax": false, "strict": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := k.Codec.Decode(body, runtime.ContentTypeJSON, def, strict); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecodeUpstream measures upstream's codec, for comparison with BenchmarkDecode.
func BenchmarkDecodeUpstream(b *testing.B) {
	info, _ := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	decoder := legacyscheme.Codecs.DecoderToVersion(info.StrictSerializer, schema.GroupVersion{Version: runtime.APIVersionInternal})
	def, body := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, []byte(configMap)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := decoder.Decode(body, &def, &api.ConfigMap{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	k := find(b, "", "configmaps")
	obj := decode(b, k, configMap)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Codec.Encode(obj); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	k := find(b, "", "configmaps")
	stored, err := k.Codec.Encode(decode(b, k, configMap))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Codec.Load(stored); err != nil {
			b.Fatal(err)
		}
	}
}
