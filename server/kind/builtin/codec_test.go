package builtin_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

func find(t testing.TB, group, resource string) *kind.Kind {
	t.Helper()
	for _, k := range builtin.Kinds(builtin.Options{}) {
		if k.Group == group && k.Resource == resource {
			return k
		}
	}
	t.Fatalf("no Kind %s/%s", group, resource)
	return nil
}

func decode(t testing.TB, k *kind.Kind, body string) runtime.Object {
	t.Helper()
	obj, _, err := k.Codec.Decode([]byte(body), runtime.ContentTypeJSON, k.GVK(k.Versions[0].Name), true)
	if err != nil {
		t.Fatalf("decode %s: %v", k.Kind, err)
	}
	return obj
}

func TestEncodeHasNoResourceVersion(t *testing.T) {
	k := find(t, "", "configmaps")
	obj := decode(t, k, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"},"data":{"k":"<v>"}}`)
	stored, err := k.Codec.Encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"\u003cv\u003e"}}`
	if diff := cmp.Diff(want, string(stored)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if rv := obj.(*api.ConfigMap).ResourceVersion; rv != "7" {
		t.Errorf("Encode changed the caller's resourceVersion to %q", rv)
	}
}

// TestEncodeEmptyList: an object with an empty list is stored as upstream would read it back from protobuf, and its
// templates of claims keep their kind, which protobuf has not.
func TestEncodeEmptyList(t *testing.T) {
	k := find(t, "apps", "statefulsets")
	obj := decode(t, k, `{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"b"}},"serviceName":"a",
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"p","projected":{"sources":[]}}]}},"volumeClaimTemplates":[{"metadata":{"name":"v"},"spec":{}}]}}`)
	stored, err := k.Codec.Encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(stored, []byte(`"volumeClaimTemplates":[{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"v"`)) {
		t.Errorf("stored as %s", stored)
	}
}

// TestRoundTrip sends random objects of every stored kind through the log's form and
// back, and through every served version.
func TestRoundTrip(t *testing.T) {
	for _, k := range builtin.Kinds(builtin.Options{}) {
		if k.Virtual != nil {
			continue
		}
		t.Run(k.Group+"/"+k.Resource, func(t *testing.T) {
			for seed := range int64(10) {
				roundTrip(t, k, randomObject(t, k, seed))
			}
		})
	}
}

func roundTrip(t *testing.T, k *kind.Kind, obj runtime.Object) {
	t.Helper()
	stored, err := k.Codec.Encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	gvk := k.StoredGVK()
	open := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{`, gvk.Kind, gvk.GroupVersion())
	if !strings.HasPrefix(string(stored), open) {
		t.Errorf("stored object begins with %.80s, want %s", stored, open)
	}
	if bytes.HasSuffix(stored, []byte("\n")) || strings.HasPrefix(string(stored), open+`"resourceVersion"`) {
		t.Errorf("stored object has a newline or a resourceVersion: %s", stored)
	}
	loaded, err := k.Codec.Load(stored)
	if err != nil {
		t.Fatal(err)
	}
	again, err := k.Codec.Encode(loaded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(stored), string(again)); diff != "" {
		t.Fatalf("load and encode (-first +second):\n%s", diff)
	}
	for _, v := range k.Versions {
		versioned, err := k.Codec.Versioned(loaded, k.GVK(v.Name).GroupVersion())
		if err != nil {
			t.Fatal(err)
		}
		if got := versioned.GetObjectKind().GroupVersionKind(); got != k.GVK(v.Name) {
			t.Errorf("Versioned set %v, want %v", got, k.GVK(v.Name))
		}
		if m, _ := meta.Accessor(versioned); m == nil {
			t.Errorf("%T has no metadata", versioned)
		}
	}
}

// TestDecodeLikeUpstream compares the short cut with upstream's codec: object, kind and error
// text must be the same for every body.
func TestDecodeLikeUpstream(t *testing.T) {
	bodies := map[string]string{
		"plain":              `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}`,
		"sorted keys":        `{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"name":"a"}}`,
		"no kind":            `{"metadata":{"name":"a"}}`,
		"no version":         `{"kind":"ConfigMap","metadata":{"name":"a"}}`,
		"other kind":         `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`,
		"other version":      `{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"a"}}`,
		"other group":        `{"kind":"Deployment","apiVersion":"apps/v1beta1","metadata":{"name":"a"}}`,
		"unknown kind":       `{"kind":"Nonsense","apiVersion":"v1"}`,
		"unknown field":      `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","x":1},"y":{}}`,
		"duplicate field":    `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","name":"b"}}`,
		"case":               `{"kind":"ConfigMap","apiVersion":"v1","Metadata":{"name":"a"}}`,
		"wrong type":         `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":1}}`,
		"wrong type of data": `{"kind":"ConfigMap","apiVersion":"v1","data":{"k":{}}}`,
		"syntax":             `{"kind":"ConfigMap",`,
		"trailing":           `{"kind":"ConfigMap","apiVersion":"v1"} x`,
		"array":              `[]`,
		"null":               `null`,
		"empty":              ``,
	}
	k := find(t, "", "configmaps")
	def := k.GVK("v1")
	hub := schema.GroupVersion{Version: runtime.APIVersionInternal}
	info, _ := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	for name, body := range bodies {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/strict=%v", name, strict), func(t *testing.T) {
				s := info.Serializer
				if strict {
					s = info.StrictSerializer
				}
				want, wantGVK, wantErr := legacyscheme.Codecs.DecoderToVersion(s, hub).Decode([]byte(body), &def, &api.ConfigMap{})
				got, gotGVK, gotErr := k.Codec.Decode([]byte(body), runtime.ContentTypeJSON, def, strict)
				if fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
					t.Errorf("error %v, want %v", gotErr, wantErr)
				}
				if runtime.IsStrictDecodingError(wantErr) != runtime.IsStrictDecodingError(gotErr) {
					t.Errorf("strictness of the error differs: %v, want %v", gotErr, wantErr)
				}
				if wantGVK != nil && *wantGVK != gotGVK {
					t.Errorf("gvk %v, want %v", gotGVK, wantGVK)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("object (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestDecodeMediaTypes(t *testing.T) {
	k := find(t, "", "configmaps")
	def := k.GVK("v1")
	want := decode(t, k, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}`)
	versioned, err := k.Codec.Versioned(want, def.GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range legacyscheme.Codecs.SupportedMediaTypes() {
		body, err := runtime.Encode(info.Serializer, versioned)
		if err != nil {
			t.Fatal(err)
		}
		got, gvk, err := k.Codec.Decode(body, info.MediaType, def, true)
		if err != nil {
			t.Fatalf("%s: %v", info.MediaType, err)
		}
		if diff := cmp.Diff(want, got); diff != "" || gvk != def {
			t.Errorf("%s: %v (-want +got):\n%s", info.MediaType, gvk, diff)
		}
	}
	if _, _, err := k.Codec.Decode(nil, "text/plain", def, false); err == nil {
		t.Error("text/plain was decoded")
	}
}

func TestDecodeFillsDefaults(t *testing.T) {
	k := find(t, "", "services")
	obj := decode(t, k, `{"kind":"Service","apiVersion":"v1","spec":{"ports":[{"port":80}]}}`)
	svc := obj.(*api.Service)
	if svc.Spec.Type != api.ServiceTypeClusterIP || svc.Spec.Ports[0].Protocol != api.ProtocolTCP {
		t.Errorf("defaults are missing: %+v", svc.Spec)
	}
}

// TestLoadOtherVersion reads an object that was stored in a version other than today's.
func TestLoadOtherVersion(t *testing.T) {
	k := find(t, "apps", "deployments")
	obj, err := k.Codec.Load([]byte(`{"kind":"Deployment","apiVersion":"apps/v1beta2","metadata":{"name":"a","resourceVersion":"3"},"spec":{"replicas":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := meta.Accessor(obj); m.GetName() != "a" || m.GetResourceVersion() != "3" {
		t.Errorf("loaded %+v", obj)
	}
}

// TestSharedObject encodes one object in several goroutines at once, in every version:
// the race detector would find a conversion that writes to what it reads.
func TestSharedObject(t *testing.T) {
	for _, k := range builtin.Kinds(builtin.Options{}) {
		if k.Virtual != nil {
			continue
		}
		obj := randomObject(t, k, 3)
		before := obj.DeepCopyObject()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, err := k.Codec.Encode(obj); err != nil {
					t.Error(err)
				}
				for _, v := range k.Versions {
					if _, err := k.Codec.Versioned(obj, k.GVK(v.Name).GroupVersion()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if diff := cmp.Diff(before, obj, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("%s was changed (-before +after):\n%s", k.Resource, diff)
		}
	}
}
