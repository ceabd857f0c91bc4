package builtin_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore"
)

var configMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default",` +
	`"uid":"7a1f4c0e-2a8c-4a55-9d0b-6d4f2f2d7b1e","creationTimestamp":"2024-05-01T10:00:00Z","labels":{"app":"a"}},` +
	`"data":{"key":"` + strings.Repeat("x", 1024) + `"}}`

// BenchmarkKinds is what a start pays for the Kinds: bare, and with upstream's registries.
func BenchmarkKinds(b *testing.B) {
	log, err := dialects.Open(b.Context(), "sqlite://:memory:", dialects.Options{})
	if err != nil {
		b.Fatal(err)
	}
	store, err := sqlstore.Open(b.Context(), log, sqlstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	for name, o := range map[string]builtin.Options{"bare": {}, "attached": {Store: store, Client: &clientrest.Config{Host: "http://127.0.0.1"}}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				builtin.Kinds(o)
			}
		})
	}
}

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

// BenchmarkDecodeUpstream is what Decode is measured against.
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

func BenchmarkStore(b *testing.B) {
	k := find(b, "", "configmaps")
	obj := decode(b, k, configMap)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Codec.Store(obj); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	k := find(b, "", "configmaps")
	stored, err := k.Codec.Store(decode(b, k, configMap))
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
