package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// haPackages are what each cluster of databases needs, by its name in PLINTH_TEST_HA: programs, or patterns of
// files, and Debian's packages that have them.
var haPackages = map[string]haNeed{
	"galera":  {[]string{"mariadbd", "rsync", "/usr/lib*/galera*/libgalera_smm.so"}, []string{"mariadb-server", "galera-4", "rsync"}},
	"patroni": {[]string{"patroni", "etcd"}, []string{"patroni", "python3-etcd", "etcd-server"}},
}

type haNeed struct{ programs, packages []string }

// there tells whether all programs are.
func (n haNeed) there() bool {
	for _, program := range n.programs {
		if !installed(program) {
			return false
		}
	}
	return true
}

// installHA installs what the tests of highly available databases need that PLINTH_TEST_HA asks for.
func installHA() {
	for name := range strings.SplitSeq(os.Getenv("PLINTH_TEST_HA"), ",") {
		need := haPackages[name]
		if need.there() {
			continue
		}
		if err := install(need.packages...); err != nil {
			fmt.Fprintf(os.Stderr, "withservers: TESTS OF %s FAIL: %v\n", name, err)
		}
	}
}

// installed tells whether there is a program, or a file that a pattern fits.
func installed(program string) bool {
	if filepath.IsAbs(program) {
		files, _ := filepath.Glob(program)
		return len(files) > 0
	}
	_, err := exec.LookPath(program)
	return err == nil
}
