// Package spent has tests say what they build and start and how long that takes. .ci/suite sums it up.
package spent

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// On prints that something has been done since begun, such as "building etcd". go test prints it only with -v or
// if the package fails. On does nothing in programs that are no tests.
func On(what string, begun time.Time) {
	if testing.Testing() {
		fmt.Fprintf(os.Stdout, "spent %.2fs %s\n", time.Since(begun).Seconds(), what)
	}
}
