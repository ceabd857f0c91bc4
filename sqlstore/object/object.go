// Package object keeps Kubernetes objects in a sqlstore.Store: their keys, and values that
// are JSON.
//
// # Keys
//
// A key is /registry/<group>/<resource>/<namespace>/<name>, without the namespace for
// cluster-scoped resources; the core group is written "core". The first three segments with
// their trailing slash are the key's resource.
//
// # Values
//
// A value is a JSON object that begins with kind, apiVersion and metadata in this order,
//
//	{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a",…},…}
//
// and has no resourceVersion. The revision is spliced in as the first field of metadata
// (see Splice), so that a read serves stored bytes without parsing them.
package object

import (
	"bytes"
	"context"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Open opens a Store of objects on log. A server checks what it reads (Check, and more): Options.Check.
func Open(ctx context.Context, log changelog.Log, o sqlstore.Options) (*sqlstore.Store, error) {
	o.Format = format{}
	return sqlstore.Open(ctx, log, o)
}

// format is the sqlstore.Format of objects.
type format struct{}

func (format) Range() (from, to string)                  { return changelog.RangeOf(Root) }
func (format) ResourceOf(key string) string              { return ResourceOf(key) }
func (format) CheckKey(key string) error                 { return checkKey(key) }
func (format) Show(value []byte, revision int64) []byte  { return Splice(value, revision) }
func (format) Hide(object []byte, revision int64) []byte { return unsplice(object, revision) }
func (format) TermOf(attribute string) sqlstore.TermOf   { return TermOf(attribute) }
func (format) Plain(stored []byte) bool                  { return stored[0] == '{' }

// Frees: a delete, or a change to an object that is being deleted, which takes its finalizers
// away. Values have no spaces between tokens, and in a string of theirs the quotes would be
// escaped.
func (format) Frees(deletes bool, value []byte) bool {
	return deletes || bytes.Contains(value, []byte(`"deletionTimestamp":"`))
}

// Digest returns the digest of a log's objects, to be compared with that of a Store. t decrypts what is
// encrypted; nil: nobody can.
func Digest(ctx context.Context, z changelog.Frozen, t sqlstore.Transformer) (sqlstore.Digest, error) {
	return sqlstore.DigestOf(ctx, z, format{}, t)
}
