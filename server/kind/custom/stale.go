package custom

import (
	"bytes"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// underWay is how long a request may take that began under an earlier schema, here or on
// another server that has not heard of the new one yet: as long as any request may.
const underWay = time.Minute

// stale tells whether a stored object may differ from what Load makes of it: it is in
// another version than the storage version, or was written before the schema was what it
// is now.
func (d *Definition) stale(stored schema.GroupVersionKind) func(json []byte, revision, at int64) bool {
	head := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, stored.Kind, stored.GroupVersion().String())
	settled := int64(0)
	if d.Since > 0 {
		settled = d.At + underWay.Milliseconds()
	}
	return func(json []byte, revision, at int64) bool {
		return revision <= d.Since || at <= settled || !bytes.HasPrefix(json, head)
	}
}
