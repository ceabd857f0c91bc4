package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// packageFile returns the path of the package for a platform.
func packageFile(t *testing.T, r *release, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.dist, pattern))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%d packages are called %s", len(found), pattern)
	}
	return found[0]
}

// packaged are files that each package has, with their modes.
var packaged = map[string]os.FileMode{
	"usr/bin/plinth":                                  0o755,
	"usr/lib/systemd/system/plinth.service":           0o644,
	"usr/lib/sysusers.d/plinth.conf":                  0o644,
	"usr/share/man/man1/plinth-serve.1.gz":            0o644,
	"usr/share/bash-completion/completions/plinth":    0o644,
	"usr/share/fish/vendor_completions.d/plinth.fish": 0o644,
	"usr/share/doc/plinth/copyright":                  0o644,
	"etc/plinth/plinth.env":                           0o600,
}

func wantPackaged(t *testing.T, root string) {
	t.Helper()
	for path, mode := range packaged {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode().Perm() != mode || info.Size() == 0 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/plinth.service"))
	must(t, err)
	if !strings.Contains(string(unit), "\nExecStart=/usr/bin/plinth serve ") || strings.Contains(string(unit), "/usr/local") {
		t.Errorf("the unit does not run the packaged program: %s", unit)
	}
}

// TestDebInstalled installs the package on a bare Debian, runs the command of its unit as its user, and removes it.
func TestDebInstalled(t *testing.T) {
	r := made(t)
	p, err := here()
	must(t, err)
	file := packageFile(t, r, "plinth_*_"+p.Debian+".deb")
	wantSmall(t, file)
	in := inside{root: bareDebian(t)}
	said(t, "cp", file, filepath.Join(in.root, "plinth.deb"))
	if out := in.said(t, "dpkg", "--install", "/plinth.deb"); !strings.Contains(out, "systemctl enable --now plinth") {
		t.Errorf("the installation does not say how to start plinth: %s", out)
	}
	wantPackaged(t, in.root)
	if out := in.said(t, "plinth", "version"); !strings.HasPrefix(out, "plinth "+r.version+" ") {
		t.Errorf("version says %s", out)
	}
	user := in.said(t, "getent", "passwd", "plinth")
	if !regexp.MustCompile(`^plinth:\w*:\d+:\d+:[^:]*:/var/lib/plinth:/\S*nologin\n$`).MatchString(user) {
		t.Errorf("the user of the service is %q", user)
	}
	in.said(t, "install", "-d", "-o", "plinth", "-g", "plinth", "-m", "0700", "/var/lib/plinth") // as systemd does for StateDirectory
	service := in
	service.user = "plinth:plinth"
	service.serves(t, "var/lib/plinth", "/usr/bin/plinth", "serve", "--data-dir", "/var/lib/plinth", "--listen", "127.0.0.1:0")
	in.said(t, "sh", "-c", "echo PLINTH_LISTEN=0.0.0.0:6443 >>/etc/plinth/plinth.env")
	in.said(t, "dpkg", "--install", "/plinth.deb") // again, as an upgrade
	if env := in.said(t, "cat", "/etc/plinth/plinth.env"); !strings.Contains(env, "\nPLINTH_LISTEN=0.0.0.0:6443\n") {
		t.Errorf("an upgrade has changed the settings: %s", env)
	}
	if out := in.said(t, "dpkg", "--remove", "plinth"); !strings.Contains(out, "/var/lib/plinth stays") {
		t.Errorf("the removal does not say what stays: %s", out)
	}
	wantThere(t, in.root, "usr/bin/plinth", false)
	wantThere(t, in.root, "etc/plinth/plinth.env", true)
	in.said(t, "dpkg", "--purge", "plinth")
	wantThere(t, in.root, "etc/plinth", false)
	wantThere(t, in.root, "var/lib/plinth/plinth.db", true)
	if out, err := in.command("dpkg", "--status", "plinth").CombinedOutput(); err == nil {
		t.Errorf("after a purge there is %s", out)
	}
}

func wantThere(t *testing.T, root, path string, want bool) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(root, path)); (err == nil) != want {
		t.Errorf("%s: %v, want it to be there: %v", path, err, want)
	}
}

// TestDebs compares the packages of all platforms.
func TestDebs(t *testing.T) {
	r := made(t)
	var first []string
	for _, p := range platforms {
		file := packageFile(t, r, "plinth_*_"+p.Debian+".deb")
		wantSmall(t, file)
		root := t.TempDir()
		said(t, "dpkg-deb", "--extract", file, root)
		wantPackaged(t, root)
		wantStatic(t, filepath.Join(root, "usr/bin/plinth"), p)
		if out := said(t, "dpkg-deb", "--field", file, "Architecture", "Version"); out != fmt.Sprintf("Architecture: %s\nVersion: %s\n", p.Debian, debianVersion(r.version)) {
			t.Errorf("%s says %s", file, out)
		}
		names := strings.Fields(said(t, "sh", "-c", `cd "$1" && find . -type f | sort`, "sh", root))
		if first == nil {
			first = names
		} else if !slices.Equal(first, names) {
			t.Errorf("the packages have other files: %v and %v", first, names)
		}
	}
}

// debianVersion is a version in Debian's form, where ~ comes before a release.
func debianVersion(version string) string {
	return strings.Replace(strings.TrimPrefix(version, "v"), "-", "~", 1) + "-1"
}

// TestRPMs installs the packages below a root of their own, and removes them.
func TestRPMs(t *testing.T) {
	r := made(t)
	needs(t, "rpm", "rpm")
	for _, p := range platforms {
		t.Run(p.Arch, func(t *testing.T) {
			file := packageFile(t, r, "plinth-*."+p.RPM+".rpm")
			wantSmall(t, file)
			if out := said(t, "rpm", "--query", "--package", "--queryformat", "%{NAME} %{ARCH} %{LICENSE}", file); out != "plinth "+p.RPM+" Apache-2.0" {
				t.Errorf("the package says %s", out)
			}
			root := t.TempDir()
			said(t, "rpm", "--root", root, "--initdb")
			said(t, "rpm", "--root", root, "--install", "--noscripts", "--nodeps", "--ignorearch", file)
			wantPackaged(t, root)
			wantStatic(t, filepath.Join(root, "usr/bin/plinth"), p)
			said(t, "rpm", "--root", root, "--verify", "--nodeps", "--noscripts", "plinth")
			said(t, "rpm", "--root", root, "--erase", "--noscripts", "plinth")
			wantThere(t, root, "usr/bin/plinth", false)
		})
	}
}

// TestPackageScripts runs shellcheck on what packages run as root.
func TestPackageScripts(t *testing.T) {
	scripts, err := filepath.Glob("package/*.sh")
	must(t, err)
	for _, script := range append(scripts, "../../install.sh") {
		if out, err := exec.Command(needs(t, "shellcheck", "shellcheck"), script).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", script, out)
		}
	}
}
