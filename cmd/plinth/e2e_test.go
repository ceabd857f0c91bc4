package main

import (
	"os"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/quiet"
)

func init() { quiet.Libraries(os.Stderr) }

// forEach runs test on a fresh database of each dialect, side by side.
func forEach(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Parallel()
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) { test(t, d.Fresh(t)) })
}
