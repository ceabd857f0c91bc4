package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// haPackages are what each cluster of databases needs, by its name in PLINTH_TEST_HA: programs, and Debian's
// packages that have them.
var haPackages = map[string]struct{ programs, packages []string }{
	"patroni": {[]string{"patroni", "etcd"}, []string{"patroni", "python3-etcd", "etcd-server"}},
}

// installHA installs what the tests of highly available databases need that PLINTH_TEST_HA asks for.
func installHA() {
	for name := range strings.SplitSeq(os.Getenv("PLINTH_TEST_HA"), ",") {
		need := haPackages[name]
		missing := false
		for _, program := range need.programs {
			_, err := exec.LookPath(program)
			missing = missing || err != nil
		}
		if !missing {
			continue
		}
		if err := install(need.packages...); err != nil {
			fmt.Fprintf(os.Stderr, "withservers: TESTS OF %s FAIL: %v\n", name, err)
		}
	}
}
