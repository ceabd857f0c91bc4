package pki

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfig(t *testing.T) {
	p := mustOpen(t, "", nil)
	path := filepath.Join(t.TempDir(), "data", "kubeconfig")
	write := func(url string) os.FileInfo {
		t.Helper()
		if err := p.WriteKubeconfig(path, url); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := write("https://127.0.0.1:1")
	if first.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", first.Mode())
	}
	if again := write("https://127.0.0.1:1"); !os.SameFile(first, again) {
		t.Error("a kubeconfig that needed no change was replaced")
	}
	if moved := write("https://127.0.0.1:2"); os.SameFile(first, moved) {
		t.Error("the kubeconfig was changed in place")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:2" || string(config.CAData) != string(p.CA()) || len(config.KeyData) == 0 {
		t.Errorf("the kubeconfig points at %s", config.Host)
	}
}
