package kind

import "bytes"

// CustomResource is what a Kind has if a CustomResourceDefinition made it.
type CustomResource struct {
	// Definition made the Kind, and those of the other versions.
	Definition *Definition
	// Gone is closed when the Kind is taken out of service or replaced by one that renders
	// objects differently. Then its watches end.
	Gone <-chan struct{}
	// Terminating says that nothing is created any more, because the definition is being
	// deleted.
	Terminating bool
	// Broken says that objects cannot be converted because of a mistake in the definition. Each
	// request is refused, and nothing but Lookup knows the Kind.
	Broken bool
	// Stale tells whether stored JSON may differ from what Codec.Load makes of it: objects
	// that were stored before the schema changed may lack defaults. at is the time of the
	// commit in Unix milliseconds.
	Stale func(json []byte, revision, at int64) bool
	// Conversion is set if a webhook converts between versions.
	Conversion *Conversion
}

// Gone returns the channel that is closed when the Kind goes; nil if it never does.
func (k *Kind) Gone() <-chan struct{} {
	if k.Custom == nil {
		return nil
	}
	return k.Custom.Gone
}

// Stale tells whether stored JSON may differ from what Codec.Load makes of it: an older release may have stored
// it in another version; see also CustomResource.
func (k *Kind) Stale(json []byte, revision, at int64) bool {
	if k.Custom != nil {
		return k.Custom.Stale(json, revision, at)
	}
	return !bytes.HasPrefix(json, k.StoredHead)
}

// Conversion returns the webhook's part in reading and writing objects; nil if none calls
// one.
func (k *Kind) Conversion() *Conversion {
	if k.Custom == nil {
		return nil
	}
	return k.Custom.Conversion
}
