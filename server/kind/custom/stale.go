package custom

import "time"

// underWay is the longest time that a request may take. A request that began under an earlier
// schema, here or on another replica, may store objects until then.
const underWay = time.Minute

// stale is kind.CustomResource.Stale: a stored object may have been written under an earlier schema.
func (d *Definition) stale() func(revision, at int64) bool {
	until := int64(0)
	if d.Since > 0 {
		until = d.At + underWay.Milliseconds()
	}
	return func(revision, at int64) bool { return revision <= d.Since || at <= until }
}
