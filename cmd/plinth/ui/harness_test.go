package ui

import (
	"os"
	"testing"

	"github.com/plinth-io/plinth/server/logging"
)

func TestMain(m *testing.M) {
	logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
	os.Exit(m.Run())
}
