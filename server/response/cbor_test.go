package response

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestHeadsCBOR compares the heads of maps and lists with those of the library, around each size
// where they grow.
func TestHeadsCBOR(t *testing.T) {
	for _, n := range []int{0, 1, 22, 23, 24, 25, 253, 254, 255, 256, 65535, 65536} {
		list, err := direct.Marshal(make([]any, n))
		if err != nil {
			t.Fatal(err)
		}
		if want := list[:len(list)-n]; !bytes.Equal(appendHead(nil, arrayHead, n), want) {
			t.Errorf("list of %d: %x, want %x", n, appendHead(nil, arrayHead, n), want)
		}
		if n > 255-2 {
			continue
		}
		object := map[string]any{}
		for i := range n {
			object[fmt.Sprint(i)] = int64(i)
		}
		b, err := direct.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		typed, err := WithTypeCBOR("v1", "Thing", b)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := direct.Unmarshal(typed, &got); err != nil {
			t.Fatalf("map of %d: %v", n, err)
		}
		object["apiVersion"], object["kind"] = "v1", "Thing"
		if diff := cmp.Diff(object, got); diff != "" {
			t.Errorf("map of %d (-want +got):\n%s", n, diff)
		}
	}
}

// TestListHeadCBOR wants lists to be those that the library makes.
func TestListHeadCBOR(t *testing.T) {
	for n, want := range map[int]metav1.PartialObjectMetadataList{
		-1: {},
		0:  {Items: []metav1.PartialObjectMetadata{}},
		2:  {Items: make([]metav1.PartialObjectMetadata, 2)},
	} {
		want.Kind, want.APIVersion, want.ResourceVersion = "List", "v1", "7"
		list, err := ListHeadCBOR("v1", "List", want.ListMeta, n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Items {
			item, err := marshalCBOR(&want.Items[i])
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, item...)
		}
		var got metav1.PartialObjectMetadataList
		if err := direct.Unmarshal(list, &got); err != nil {
			t.Fatalf("list of %d: %v", n, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("list of %d (-want +got):\n%s", n, diff)
		}
	}
}

// TestEveryKindCBOR wants every built-in kind to have an encoding in CBOR: the library refuses types
// that encode themselves as JSON and not as CBOR.
func TestEveryKindCBOR(t *testing.T) {
	for _, k := range builtin.Kinds(builtin.Options{}) {
		if k.Virtual != nil || k.Observed != nil {
			continue
		}
		value, err := k.Codec.Encode(k.Codec.New())
		if err != nil {
			t.Fatalf("%s: %v", k.Kind, err)
		}
		for _, v := range k.Versions {
			checkCBOR(t, k, v.Name, &sqlstore.Entry{Key: k.Key("", "x"), Value: value})
		}
	}
}

func checkCBOR(t *testing.T, k *kind.Kind, version string, e *sqlstore.Entry) {
	t.Helper()
	gvk := k.GVK(version)
	object, err := Object(k, e, version, CBOR)
	if err != nil {
		t.Errorf("%s: %v", gvk, err)
		return
	}
	if again, _ := ObjectRendering(k, version, CBOR).Of(e); len(again) == 0 {
		t.Errorf("%s: nothing is kept", gvk)
	}
	var got map[string]any
	if err := direct.Unmarshal(object, &got); err != nil || got["kind"] != gvk.Kind || got["apiVersion"] != gvk.GroupVersion().String() {
		t.Errorf("%s: %v %v", gvk, got, err)
	}
	read, _, err := k.Codec.Decode(object, MediaCBOR, gvk, true)
	if err != nil {
		t.Errorf("%s is not read back: %v", gvk, err)
		return
	}
	again, err := k.Codec.Encode(read)
	if err != nil {
		t.Errorf("%s: %v", gvk, err)
	}
	if version == k.Stored.Version && !bytes.Equal(again, e.Value) {
		t.Errorf("%s became another object:\n%s\n%s", gvk, e.Value, again)
	}
}
