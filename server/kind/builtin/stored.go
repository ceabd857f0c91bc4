package builtin

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// CheckStored refuses an object, which has passed object.Check, that is in one of Kubernetes' own groups and was stored
// by another release, as a kind or in a version that this one cannot read.
func CheckStored(key string, value []byte) error {
	prefix := object.ResourceOf(key)
	if group, _ := object.SplitPrefix(prefix); !ownGroup(group) {
		return nil
	}
	is := typeOf(value)
	if schemeOf(is.GroupVersionKind()) != nil {
		return nil
	}
	return fmt.Errorf("%s %s is stored in %s, which Kubernetes %s.%s does not know: it stays, and cannot be served; write it again in another version, or delete it (docs/releases.md)",
		is.Kind, key[len(prefix):], is.APIVersion, kind.Major, kind.Minor)
}

// typeOf reads the beginning of an object, which is laid out as package object says, and all of it only if
// something else comes first.
func typeOf(value []byte) (is metav1.TypeMeta) {
	rest, _ := bytes.CutPrefix(value, []byte(`{"kind":"`))
	name, rest, _ := bytes.Cut(rest, []byte(`","apiVersion":"`))
	version, _, _ := bytes.Cut(rest, []byte(`"`))
	if len(version) > 0 && !bytes.ContainsAny(name, `"\`) && !bytes.Contains(version, []byte(`\`)) {
		return metav1.TypeMeta{Kind: string(name), APIVersion: string(version)}
	}
	_ = kjson.UnmarshalCaseSensitivePreserveInts(value, &is) // object.Check has read it
	return is
}
