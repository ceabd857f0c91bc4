package custom

import (
	"bytes"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// underWay is the longest time that a request may take. A request that began under an earlier
// schema, here or on another replica, may store objects until then.
const underWay = time.Minute

// stale is kind.CustomResource.Stale. A stored object is stale if it is in another version than
// the storage version, or may have been written under an earlier schema.
func (d *Definition) stale(stored schema.GroupVersionKind) func(json []byte, revision, at int64) bool {
	head := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, stored.Kind, stored.GroupVersion().String())
	until := int64(0)
	if d.Since > 0 {
		until = d.At + underWay.Milliseconds()
	}
	return func(json []byte, revision, at int64) bool {
		return revision <= d.Since || at <= until || !bytes.HasPrefix(json, head)
	}
}
