package encryption_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// TestNothingPlain looks for the text of a Secret in all that a database keeps.
func TestNothingPlain(t *testing.T) {
	for _, provider := range []string{"aesgcm", "aescbc", "secretbox"} {
		t.Run(provider, func(t *testing.T) {
			logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
				dsn := d.Fresh(t)
				s := start(t, dsn, encryption.Options{ConfigFile: configFile(t, secretsBy(provider+" a", "identity"))})
				a := s.put(t, "a", "1")
				a.Data["value"] = []byte("2")
				if _, err := s.client.CoreV1().Secrets("default").Update(t.Context(), a, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				s.put(t, "b", "1")
				if err := s.client.CoreV1().Secrets("default").Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				const open = "for-everybody"
				config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"a": open}}
				if _, err := s.client.CoreV1().ConfigMaps("default").Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				var rows, tombstones int
				for _, r := range stored(t, dsn) {
					if !strings.HasPrefix(r.key, secretKeys) {
						continue
					}
					if rows++; r.deleted {
						tombstones++
					}
					if got := formOf(r.value); got != provider+":v1:a" || strings.Contains(r.value, plain) {
						t.Errorf("%s is stored as %s", r.key, got)
					}
				}
				if rows != 4 || tombstones != 1 {
					t.Errorf("%d rows of Secrets, %d of them tombstones", rows, tombstones)
				}
				everything := viewText(t, dsn) + fileText(t, dsn)
				if strings.Contains(everything, plain) {
					t.Error("the text of a Secret is in the view or in the files")
				}
				if !strings.Contains(everything, open) {
					t.Error("the text of a ConfigMap is not found, so this test finds nothing")
				}
			})
		})
	}
}

func viewText(t *testing.T, dsn string) string {
	t.Helper()
	rows, err := open(t, dsn).QueryContext(t.Context(), "SELECT namespace, name, object FROM objects")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var text strings.Builder
	for rows.Next() {
		var namespace, name string
		var object []byte
		if err := rows.Scan(&namespace, &name, &object); err != nil {
			t.Fatal(err)
		}
		if len(object) == 0 && namespace+"/"+name != "default/a" {
			t.Errorf("%s/%s has no object", namespace, name)
		}
		fmt.Fprintln(&text, namespace, name, string(object))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// fileText is the database's files, where the test can read them: file, journal and what is
// beside them of SQLite.
func fileText(t *testing.T, dsn string) string {
	t.Helper()
	if dialects.Scheme(dsn) != "sqlite" {
		return ""
	}
	path := strings.TrimPrefix(dsn, "sqlite://")
	var all bytes.Buffer
	for _, file := range []string{path, path + "-wal"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// TestReads reads Secrets in every way there is, from memory and from the log.
func TestReads(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn, o := d.Fresh(t), encryption.Options{ConfigFile: configFile(t, secretsBy("aesgcm a", "identity"))}
		s := start(t, dsn, o)
		var middle string
		for i := range 5 {
			middle = s.put(t, fmt.Sprintf("s%d", i), "old").ResourceVersion
		}
		for i := range 5 {
			changed := s.get(t, fmt.Sprintf("s%d", i))
			changed.Data["value"] = []byte("new")
			if _, err := s.client.CoreV1().Secrets("default").Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.client.CoreV1().Secrets("default").Delete(t.Context(), "s4", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		readAll(t, s, middle)
		if d.Servers > 1 {
			readAll(t, start(t, dsn, o), middle)
			return
		}
		s.stop(t)
		readAll(t, start(t, dsn, o), middle)
	})
}

func readAll(t *testing.T, s *instance, middle string) {
	t.Helper()
	secrets := s.client.CoreV1().Secrets("default")
	check := func(what string, items []corev1.Secret, n int, value string) {
		if len(items) != n {
			t.Errorf("%s: %d Secrets, not %d", what, len(items), n)
		}
		for _, i := range items {
			if got := string(i.Data["value"]); got != value || i.Annotations["of"] != plain {
				t.Errorf("%s: %s has %q", what, i.Name, got)
			}
		}
	}
	if got := string(s.get(t, "s1").Data["value"]); got != "new" {
		t.Errorf("get: %q", got)
	}
	all, err := secrets.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check("list", all.Items, 4, "new")
	old, err := secrets.List(t.Context(), metav1.ListOptions{ResourceVersion: middle, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if err != nil {
		t.Fatal(err)
	}
	check("list of the past", old.Items, 5, "old")
	var paged []corev1.Secret
	for next := (metav1.ListOptions{ResourceVersion: middle, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: 2}); ; {
		page, err := secrets.List(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		paged = append(paged, page.Items...)
		if page.Continue == "" {
			break
		}
		next = metav1.ListOptions{Limit: 2, Continue: page.Continue}
	}
	check("pages of the past", paged, 5, "old")
	w, err := secrets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: middle, TimeoutSeconds: new(int64)})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	watchPast(t, s.client, middle)
}

func watchPast(t *testing.T, client *kubernetes.Clientset, from string) {
	t.Helper()
	w, err := client.CoreV1().Secrets("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: from})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for i := range 6 {
		select {
		case ev := <-w.ResultChan():
			got, ok := ev.Object.(*corev1.Secret)
			if !ok || string(got.Data["value"]) != "new" || (i == 5) != (ev.Type == "DELETED") {
				t.Errorf("event %d: %s %v", i, ev.Type, ev.Object)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("no event %d", i)
		}
	}
}

// TestSwappedValues puts the stored form of one Secret in the place of another: the key is
// authenticated with the value.
func TestSwappedValues(t *testing.T) {
	dsn, o := logtest.SQLite(t), encryption.Options{ConfigFile: configFile(t, secretsBy("aesgcm a"))}
	s := start(t, dsn, o)
	s.put(t, "a", "1")
	s.put(t, "b", "2")
	s.stop(t)
	_, err := open(t, dsn).Exec(`UPDATE log SET value = (SELECT value FROM log WHERE key = ?) WHERE key = ?`, secretKeys+"a", secretKeys+"b")
	if err != nil {
		t.Fatal(err)
	}
	s = start(t, dsn, o)
	s.get(t, "a")
	if _, err := s.client.CoreV1().Secrets("default").Get(t.Context(), "b", metav1.GetOptions{}); err == nil {
		t.Error("the value of one Secret is read as that of another")
	}
	s.stop(t)

	// The store refuses values of other names too, so the transformer is asked itself.
	p, err := encryption.Open(o, "swapped")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	stored, err := p.ToStorage(t.Context(), secretKeys+"a", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if plain, _, err := p.FromStorage(t.Context(), secretKeys+"a", stored); err != nil || string(plain) != "{}" {
		t.Errorf("under its own key the value is %q, %v", plain, err)
	}
	if plain, _, err := p.FromStorage(t.Context(), secretKeys+"b", stored); err == nil {
		t.Errorf("under another key the value is %q", plain)
	}
}

// TestRewrite sends writes that change nothing.
func TestRewrite(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn, file := d.Fresh(t), configFile(t, secretsBy("aesgcm a", "identity"))
		s := start(t, dsn, encryption.Options{})
		writes := map[string]func(s *instance, name string, dry []string) (*corev1.Secret, error){
			"update": func(s *instance, name string, dry []string) (*corev1.Secret, error) {
				now := s.get(t, name)
				return s.client.CoreV1().Secrets("default").Update(t.Context(), now, metav1.UpdateOptions{DryRun: dry})
			},
			"patch": func(s *instance, name string, dry []string) (*corev1.Secret, error) {
				return s.client.CoreV1().Secrets("default").Patch(t.Context(), name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: dry})
			},
			"apply": func(s *instance, name string, dry []string) (*corev1.Secret, error) {
				body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"labels":{"a":"b"}}}`, name)
				return s.client.CoreV1().Secrets("default").Patch(t.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "m", DryRun: dry})
			},
		}
		names := []string{"apply", "patch", "update"}
		for _, name := range names {
			s.put(t, name, "1")
		}
		if _, err := writes["apply"](s, "apply", nil); err != nil {
			t.Fatal(err)
		}
		rewrite := func(s *instance, want string, changed bool) {
			t.Helper()
			for _, name := range names {
				before := s.get(t, name).ResourceVersion
				was := form(t, dsn, secretKeys+name)
				if _, err := writes[name](s, name, []string{"All"}); err != nil {
					t.Fatal(err)
				}
				if got := form(t, dsn, secretKeys+name); got != was {
					t.Errorf("%s: a dry run has stored %s", name, got)
				}
				after, err := writes[name](s, name, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := form(t, dsn, secretKeys+name); got != want || (after.ResourceVersion != before) != changed {
					t.Errorf("%s: stored as %s, not %s; resourceVersion %s became %s", name, got, want, before, after.ResourceVersion)
				}
			}
		}
		rewrite(s, "plain", false)
		for _, step := range []struct {
			providers []string
			want      string
		}{
			{[]string{"aesgcm a", "identity"}, "aesgcm:v1:a"},
			{[]string{"aesgcm b", "aesgcm a"}, "aesgcm:v1:b"},
			{[]string{"secretbox c", "aesgcm b"}, "secretbox:v1:c"},
			{[]string{"identity", "secretbox c"}, "plain"},
		} {
			s.stop(t)
			writeConfig(t, file, configText(secretsBy(step.providers...)))
			s = start(t, dsn, encryption.Options{ConfigFile: file})
			rewrite(s, step.want, true)
			rewrite(s, step.want, false)
		}
	})
}

// TestResources has wildcards, and which of several rules counts.
func TestResources(t *testing.T) {
	dsn := logtest.SQLite(t)
	s := start(t, dsn, encryption.Options{ConfigFile: configFile(t,
		rule{"configmaps", []string{"identity"}},
		rule{"secrets,serviceaccounts", []string{"aesgcm a"}},
		rule{"*.apps", []string{"secretbox b"}},
		rule{"cars.example.com", []string{"aescbc d"}},
		rule{"*.", []string{"aescbc c"}},
		rule{"*.*", []string{"secretbox e"}},
	)})
	makeCars(t, s)
	s.put(t, "a", "1")
	want := map[string]string{
		"/registry/core/configmaps/":                                "plain",
		"/registry/core/secrets/":                                   "aesgcm:v1:a",
		"/registry/core/services/":                                  "aescbc:v1:c",
		"/registry/core/namespaces/":                                "aescbc:v1:c",
		"/registry/example.com/cars/":                               "aescbc:v1:d",
		"/registry/example.com/boats/":                              "secretbox:v1:e",
		"/registry/apiextensions.k8s.io/customresourcedefinitions/": "secretbox:v1:e",
		"/registry/scheduling.k8s.io/priorityclasses/":              "secretbox:v1:e",
		"/registry/apps/deployments/":                               "secretbox:v1:b",
	}
	got := map[string][]string{}
	for _, r := range stored(t, dsn) {
		parts := strings.SplitAfterN(r.key, "/", 5)
		prefix := strings.Join(parts[:4], "")
		if form := formOf(r.value); !slices.Contains(got[prefix], form) {
			got[prefix] = append(got[prefix], form)
		}
	}
	for prefix, form := range want {
		if !slices.Equal(got[prefix], []string{form}) {
			t.Errorf("%s: stored as %v, not %s", prefix, got[prefix], form)
		}
	}
	s.stop(t)
}

// TestBadConfig names what is wrong, on one line.
func TestBadConfig(t *testing.T) {
	for text, want := range map[string]string{
		"":           "encryption provider configuration file",
		"kind: Pod":  "Pod",
		configText(): "at least one resources is required",
		configText(secretsBy("aesgcm a", "aesgcm a")) + "  x: 1\n":              "unknown field",
		configText(rule{"secrets,*.*,nodes.", []string{"aesgcm a"}}):            "nodes.",
		strings.ReplaceAll(configText(secretsBy("aesgcm a")), key("a"), "AAAA"): "not of the expected length",
		strings.ReplaceAll(configText(secretsBy("kms v /nowhere")), "v2", "v1"): "KMSv1 is deprecated",
	} {
		file := configFile(t)
		writeConfig(t, file, text)
		_, err := encryption.Open(encryption.Options{ConfigFile: file}, "test")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := encryption.Open(encryption.Options{ConfigFile: t.TempDir() + "/none"}, "test"); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("no file: %v", err)
	}
	if _, err := encryption.Open(encryption.Options{AutomaticReload: true}, "test"); err != encryption.ErrReloadAlone {
		t.Errorf("reload alone: %v", err)
	}
}

// TestCopy copies encrypted objects into a database of another dialect, as they are.
func TestCopy(t *testing.T) {
	from, to := logtest.SQLite(t), logtest.Postgres(t)
	o := encryption.Options{ConfigFile: configFile(t, secretsBy("aesgcm a"))}
	s := start(t, from, o)
	s.put(t, "a", "1")
	s.stop(t)
	source, err := dialects.Open(t.Context(), from, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	target, err := dialects.Open(t.Context(), to, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Copy(t.Context(), target, source, transfer.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	source.Close()
	target.Close()
	if got := form(t, to, secretKeys+"a"); got != "aesgcm:v1:a" {
		t.Errorf("the copy is stored as %s", got)
	}
	if got := string(start(t, to, o).get(t, "a").Data["value"]); got != "1" {
		t.Errorf("the copy has %q", got)
	}
}
