// Release makes the files of a release in ./dist, for every platform: archives, packages for Debian and for RPM, an image
// for containers, what is in each program (an SBOM), a formula for Homebrew, the script that installs an archive, and
// checksums with a signature:
//
//	go run . -version v1.2.3
//
// It is a module of its own, because plinth needs none of the modules that make these files. The same commit gives the same
// bytes, with the same versions of Go and the C compilers and the same key.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	version := flag.String("version", "", "version, such as v1.2.3; by default git's name for the commit")
	image := flag.String("image", "", "push the image that was made before to this `name`, and make nothing")
	flag.Parse()
	r, err := newRelease(*version)
	if err == nil && *image != "" {
		err = r.push(*image)
	} else if err == nil {
		err = r.make()
	}
	if err != nil {
		log.Fatal(err)
	}
}

// release is what all steps have to know.
type release struct {
	root    string // of the repository
	dist    string // where the files of the release come to be
	work    string // for files in between; removed at the end
	version string // v1.2.3
	commit  string
	date    time.Time // of the commit: no file has another time in it
}

func newRelease(version string) (*release, error) {
	r := &release{version: version}
	for _, fact := range []struct {
		into *string
		args string
	}{{&r.root, "rev-parse --show-toplevel"}, {&r.commit, "rev-parse HEAD"}} {
		said, err := git(fact.args)
		if err != nil {
			return nil, err
		}
		*fact.into = said
	}
	seconds, err := git("log -1 --format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("time of the commit: %w", err)
	}
	r.date = time.Unix(unix, 0).UTC()
	r.dist = filepath.Join(r.root, "dist")
	if r.version == "" {
		r.version = described()
	}
	return r, checkVersion(r.version)
}

// described is git's name for the commit, after the newest version below it.
func described() string {
	if name, err := git("describe --tags --match v[0-9]* --dirty"); err == nil {
		return name
	}
	name, _ := git("describe --always --dirty")
	return "v0.0.0-" + name
}

// make makes everything. Later steps take what earlier ones have made.
func (r *release) make() error {
	if err := needCompilers(); err != nil {
		return err
	}
	var err error
	if r.work, err = os.MkdirTemp("", "plinth-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if err := os.RemoveAll(r.dist); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dist, 0o755); err != nil {
		return err
	}
	log.Printf("%s, commit %s of %s, in %s", r.version, r.commit[:12], r.date.Format(time.DateOnly), r.dist)
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"programs", r.build},
		{"SBOMs", r.writeSBOMs},
		{"completions and man pages", r.writeManuals},
		{"archives", r.writeArchives},
		{"packages", r.writePackages},
		{"images", r.writeImages},
		{"formula", r.writeFormula},
		{"install.sh, checksums and signature", r.sign},
	} {
		began := time.Now()
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		log.Printf("%s: %.1f s", step.name, time.Since(began).Seconds())
	}
	return r.list()
}

// list prints the files and their sizes.
func (r *release) list() error {
	files, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			return err
		}
		fmt.Printf("%9.1f kB  dist/%s\n", float64(info.Size())/1e3, file.Name())
	}
	return nil
}

// git returns what git says, without the end of the line.
func git(args string) (string, error) {
	out, err := exec.Command("git", strings.Fields(args)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args, err)
	}
	return strings.TrimSpace(string(out)), nil
}
