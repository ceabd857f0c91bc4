package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// TestCertsCopy starts a second server with the authority of a first one, whose admin it then accepts.
func TestCertsCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serveFor(t, filepath.Join(dir, "first"), logtest.SQLite(t))
	authority := filepath.Join(dir, "authority")
	must(t, os.Mkdir(authority, 0o755))
	for _, name := range []string{"ca.crt", "ca.key"} {
		text, err := os.ReadFile(filepath.Join(first.dir, "pki", name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(authority, name), text, 0o440))
	}
	second := filepath.Join(dir, "second")
	for _, want := range []string{"copied the authority to " + second + "/pki\n", "the authority is in " + second + "/pki already\n"} {
		if code, stdout, stderr := runBuilt(t, "certs", "copy", authority, "--data-dir", second); code != 0 || stdout != want {
			t.Fatalf("exit code %d, printed %s%s", code, stdout, stderr)
		}
	}
	config := first.config(t)
	config.Host = serveFor(t, second, logtest.SQLite(t)).url
	_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	must(t, err)
	other := serveFor(t, filepath.Join(dir, "other"), logtest.SQLite(t))
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{authority, "--data-dir", other.dir}, 1, "another authority is there already"},
		{[]string{filepath.Join(dir, "nowhere")}, 2, "write the directory that has ca.crt and ca.key"},
		{nil, 2, "write the directory that has ca.crt and ca.key"},
	} {
		code, _, stderr := runBuilt(t, append([]string{"certs", "copy"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s; want %d, %s", tt.args, code, stderr, tt.code, tt.want)
		}
	}
}
