package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// versionForm is what packages of every form take as a version: a semantic version, with a v.
var versionForm = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func checkVersion(version string) error {
	if !versionForm.MatchString(version) {
		return fmt.Errorf("%q is not a version such as v1.2.3 or v1.2.3-rc.1", version)
	}
	return nil
}

// compiler returns the C compiler for a platform. On a machine of that platform the machine's own one is as good.
func (p platform) compiler() (string, error) {
	if path, err := exec.LookPath(p.Compiler); err == nil {
		return path, nil
	}
	if p.Arch == runtime.GOARCH {
		return exec.LookPath("gcc")
	}
	return "", fmt.Errorf("%s is not installed", p.Compiler)
}

// needCompilers installs the C compilers that are missing, as root on Debian and Ubuntu, and else says what to install.
func needCompilers() error {
	var missing []string
	for _, p := range platforms {
		if _, err := p.compiler(); err != nil {
			missing = append(missing, p.Needs...)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	command := "apt-get install " + strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return errors.New("C compilers are missing, because SQLite is C; on Debian and Ubuntu: " + command)
	}
	log.Print("installing C compilers: ", command)
	for _, args := range [][]string{{"update", "-qq"}, append([]string{"install", "-y", "-qq"}, missing...)} {
		cmd := exec.Command("apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}
	return nil
}

// program returns the path of a program that was built.
func (r *release) program(name string, p platform) string {
	return filepath.Join(r.work, "programs", p.Arch, name)
}

// build builds all programs for all platforms.
func (r *release) build() error {
	log.Printf("compiling everything for %d platforms: about 20 minutes on 2 cores, the first time", len(platforms))
	for _, p := range platforms {
		for _, program := range programs {
			began := time.Now()
			if err := r.buildOne(program, p); err != nil {
				return err
			}
			log.Printf("%s for linux/%s: %.0f s", program.Name, p.Arch, time.Since(began).Seconds())
		}
	}
	return nil
}

// buildOne links the program statically, with Go's own resolver, so that it runs on every Linux and in an empty container.
func (r *release) buildOne(program program, p platform) error {
	cc, err := p.compiler()
	if err != nil {
		return err
	}
	const about = "github.com/plinth-io/plinth/server."
	link := strings.Join([]string{
		"-s -w -linkmode external -extldflags -static",
		"-X", about + "buildVersion=" + r.version,
		"-X", about + "buildCommit=" + r.commit,
		"-X", about + "buildDate=" + r.date.Format(time.RFC3339),
	}, " ")
	tags := strings.Trim("netgo,osusergo,sqlite_omit_load_extension,"+program.Tags, ",")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", link,
		"-o", r.program(program.Name, p), program.Package)
	cmd.Dir = filepath.Join(r.root, program.Dir)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+p.Arch, "CGO_ENABLED=1", "CC="+cc, "GOWORK=off")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s for %s: %w", program.Name, p.Arch, err)
	}
	return nil
}

// here returns the platform of this machine, whose programs can be run.
func here() (platform, error) {
	for _, p := range platforms {
		if p.Arch == runtime.GOARCH && runtime.GOOS == "linux" {
			return p, nil
		}
	}
	return platform{}, fmt.Errorf("a release is made on Linux on one of its platforms, not on %s/%s", runtime.GOOS, runtime.GOARCH)
}
