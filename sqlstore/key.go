package sqlstore

import (
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func (ob *objects) checkKey(key string) error {
	if len(key) > changelog.MaxKeyBytes {
		return fmt.Errorf("%w: it has %d bytes, and at most %d are possible", changelog.ErrKey, len(key), changelog.MaxKeyBytes)
	}
	return ob.o.Format.CheckKey(key)
}
