package crdtest_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/server/kind/custom/crdtest"
)

var write = flag.Bool("write", false, "write testdata/workloads.yaml anew")

// testdata/workloads.yaml is Workloads as a user would apply it.
func TestWorkloads(t *testing.T) {
	want, err := yaml.Marshal(crdtest.Workloads("operator.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	want = want[:bytes.LastIndex(want, []byte("status:\n"))] // a user's file has none
	const file = "testdata/workloads.yaml"
	if *write {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is out of date: go test ./server/kind/custom/crdtest -write", file)
	}
	if len(got) < 300<<10 || len(got) > 700<<10 {
		t.Errorf("%d bytes", len(got))
	}
}
