package object_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore/object"
)

// BenchmarkCheck looks at an object as large as most pods, and at a small one, as a start does at every object.
func BenchmarkCheck(b *testing.B) {
	field := `"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{}}},`
	container := `{"name":"app","image":"registry.example.com/team/app:v1.2.3","ports":[{"containerPort":8080,"protocol":"TCP"}],"env":[{"name":"A","value":"some \"quoted\" text"}],"resources":{"limits":{"cpu":"1","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log"},`
	pod := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n","uid":"6f6e1f5e-1a3c-4c0b-9d5e-000000000000","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web"},"managedFields":[{"manager":"m","fieldsV1":{` +
		strings.Repeat(field, 8) + `"f:spec":{}}}]},"spec":{"containers":[` + strings.Repeat(container, 6) + `{"name":"last"}],"priority":0,"hostNetwork":false},"status":{"phase":"Running"}}`
	small := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"p","namespace":"n","uid":"6f6e1f5e-1a3c-4c0b-9d5e-000000000000","creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"a":"b"}}`
	for _, c := range []struct{ key, value string }{{"/registry/core/pods/n/p", pod}, {"/registry/core/configmaps/n/p", small}} {
		b.Run(fmt.Sprint(len(c.value)), func(b *testing.B) {
			value := []byte(c.value)
			b.SetBytes(int64(len(value)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(c.key, value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
