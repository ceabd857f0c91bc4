package patched

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const patch = `
diff --git a/a/b.go b/a/b.go
--- a/a/b.go
+++ b/a/b.go
@@ -1 +1 @@
-package a
+package b
diff --git a/a/new.go b/a/new.go
new file mode 100644
--- /dev/null
+++ b/a/new.go
@@ -0,0 +1 @@
+package b
`

func TestParse(t *testing.T) {
	keys, optional := []string{"fault", "run"}, []string{"packages"}
	p, err := Parse("fault: what: it does\npackages: ./a ./b\nrun: ^TestA$\n"+patch, keys, optional)
	if err != nil || p.Says["fault"] != "what: it does" || p.Says["packages"] != "./a ./b" || p.Says["run"] != "^TestA$" ||
		strings.Join(p.Changed, " ") != "a/b.go" || strings.Join(p.Added, " ") != "a/new.go" {
		t.Errorf("read are %+v, %v", p, err)
	}
	for _, bad := range []string{"", "fault: a\n" + patch, "run: a\n" + patch, "fault: a\nrun: b\n", "falt: a\nrun: b\n" + patch} {
		if _, err := Parse(bad, keys, optional); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// TestApply has a patch that applies, and then a tree on which it does not, and one that has the new file already.
func TestApply(t *testing.T) {
	for _, c := range []struct {
		name string
		tree map[string]string
		err  string
	}{
		{"applies", map[string]string{"a/b.go": "package a\n"}, ""},
		{"other text", map[string]string{"a/b.go": "package c\n"}, "does not apply"},
		{"there already", map[string]string{"a/b.go": "package a\n", "a/new.go": "package a\n"}, "is there already"},
		{"gone", nil, "no such file"},
	} {
		root, dir := t.TempDir(), t.TempDir()
		for name, text := range c.tree {
			write(t, filepath.Join(root, name), text)
		}
		p, err := Parse("fault: a\n"+patch, []string{"fault"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.File = write(t, filepath.Join(t.TempDir(), "a.patch"), "fault: a\n"+patch)
		overlay, err := p.Apply(root, dir)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: the error is %v", c.name, err)
			}
			continue
		}
		text, readErr := os.ReadFile(overlay)
		if err != nil || readErr != nil || !strings.Contains(string(text), filepath.Join(root, "a/new.go")) {
			t.Errorf("%s: the overlay is %s, %v, %v", c.name, text, err, readErr)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "a/b.go")); string(text) != "package b\n" {
			t.Errorf("%s: patched is %q, %v", c.name, text, err)
		}
	}
}

func write(t *testing.T, file, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
