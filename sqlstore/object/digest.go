package object

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Digest returns the digest of a log's objects, to be compared with that of a Store. t decrypts what is
// encrypted; nil: nobody can.
func Digest(ctx context.Context, z changelog.Frozen, t sqlstore.Transformer) (sqlstore.Digest, error) {
	return sqlstore.DigestOf(ctx, z, format{}, t)
}
