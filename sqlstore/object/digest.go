package object

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore"
)

// Digest returns the digest of a log's objects, to be compared with that of a Store. t decrypts what is
// encrypted; nil: nobody can.
func Digest(ctx context.Context, z sqlstore.Frozen, t sqlstore.Transformer) (sqlstore.Digest, error) {
	return sqlstore.DigestOf(ctx, z, format{}, t)
}
