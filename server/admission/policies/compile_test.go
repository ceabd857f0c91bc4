package policies_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/server/admission/policies"
)

// TestCompileTogether compiles policies at the same time, each of which names types that the others name, too: so many that
// they are looked up while others are. cel-go before 0.29 wrote them into an environment that all of them share; then the
// race detector, or a map that is written twice at once, would end it.
func TestCompileTogether(t *testing.T) {
	const policiesAtOnce, names = 4, 250
	var compiling sync.WaitGroup
	for i := range policiesAtOnce {
		compiling.Go(func() {
			var types []string
			for j := range names {
				types = append(types, fmt.Sprintf("Object.f%d{}", (j+i*names/policiesAtOnce)%names))
			}
			policies.CompileNaming(strings.Join(types, ", "))
		})
	}
	compiling.Wait()
}
