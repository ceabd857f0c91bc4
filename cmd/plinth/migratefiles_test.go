package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDuplicates(t *testing.T) {
	const (
		a      = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: x}\n"
		b      = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
		list   = `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}]}`
		broken = "{{ .Values }}\n"
		kustom = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	)
	d := duplicates{}
	for _, c := range []struct {
		file, data string
		want       []string
	}{
		{"a.yaml", a, nil},
		{"b.yaml", b + "---\n" + b, nil}, // within a file it is the author's
		{"other.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: y}\n", nil},
		{"k1.yaml", kustom, nil},
		{"k2.yaml", kustom, nil},
		{"broken.yaml", broken, nil},
		{"list.json", list, []string{"list.json: ConfigMap b is in b.yaml too, so it is printed twice; leave one of the files out if it was the output of an earlier run"}},
		{"new.yaml", a + "---\n" + a + "---\n" + b, []string{
			"new.yaml: Deployment.apps x/a is in a.yaml too, so it is printed twice; leave one of the files out if it was the output of an earlier run",
			"new.yaml: ConfigMap b is in b.yaml too, so it is printed twice; leave one of the files out if it was the output of an earlier run",
		}},
	} {
		if diff := cmp.Diff(c.want, d.add(c.file, []byte(c.data))); diff != "" {
			t.Errorf("%s: %s", c.file, diff)
		}
	}
}

func TestIsFile(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "new.yaml"), filepath.Join(dir, "link.yaml")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Link(name, link); err != nil {
		t.Fatal(err)
	}
	if !isFile(f, name) || !isFile(f, link) {
		t.Error("the output is not recognized")
	}
	if isFile(f, filepath.Join(dir, "missing.yaml")) || isFile(new(bytes.Buffer), name) || isFile(f, dir) {
		t.Error("something else is taken for the output")
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isFile(null, os.DevNull) {
		t.Error("a device is no file that is read back")
	}
}
