package servertest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/server/logging"
	"github.com/plinth-io/plinth/server/servertest"
)

func TestMain(m *testing.M) {
	logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
	os.Exit(m.Run())
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": "v"}}
}

func TestStart(t *testing.T) {
	srv := servertest.Start(t)
	maps := kubernetes.NewForConfigOrDie(srv.Config).CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.Data["k"] != "v" {
		t.Fatalf("got %v, %v", got, err)
	}
}

// A server on a file has its objects again after a restart.
func TestFile(t *testing.T) {
	dsn := "sqlite://" + filepath.Join(t.TempDir(), "plinth.db")
	for i := range 2 {
		srv, err := servertest.Run(t.Context(), servertest.Options{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		maps := kubernetes.NewForConfigOrDie(srv.Config).CoreV1().ConfigMaps("default")
		if i == 0 {
			_, err = maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
		} else {
			_, err = maps.Get(t.Context(), "a", metav1.GetOptions{})
		}
		if err != nil {
			t.Errorf("run %d: %v", i, err)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A hundred servers live at once, each with its own objects.
func TestHundred(t *testing.T) {
	const n = 100
	versions := make([]string, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8) // starts at once; all stay up to the end
	for i := range n {
		srv := servertest.Start(t)
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			maps := kubernetes.NewForConfigOrDie(srv.Config).CoreV1().ConfigMaps("default")
			if _, err := maps.Create(t.Context(), configMap(fmt.Sprint("only-", i)), metav1.CreateOptions{}); err != nil {
				t.Error(err)
				return
			}
			list, err := maps.List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 || list.Items[0].Name != fmt.Sprint("only-", i) {
				t.Errorf("server %d has %v, %v", i, list, err)
				return
			}
			versions[i] = string(list.Items[0].UID)
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, uid := range versions {
		if seen[uid] {
			t.Errorf("two servers share the object %s", uid)
		}
		seen[uid] = true
	}
}

func TestParallel(t *testing.T) {
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			TestStart(t)
		})
	}
}

// Nothing stays behind: no goroutine and no file, also when a watch was open and
// clients never closed their connections.
func TestGoneWithoutATrace(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	use := func() {
		srv, err := servertest.Run(t.Context(), servertest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		client := kubernetes.NewForConfigOrDie(srv.Config)
		w, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		<-w.ResultChan()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		for range w.ResultChan() { // ends, because the server ended the watch
		}
		if _, err := http.Get(srv.URL()); err == nil {
			t.Error("the server still listens")
		}
	}
	use() // starts what a process has once, such as klog's flusher
	before := stacks()
	use()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		left := newStacks(before, stacks())
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines left:\n%s", len(left), strings.Join(left, "\n\n"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	// A database that was not closed keeps its files open, and those on disk their log.
	db := filepath.Join(t.TempDir(), "plinth.db")
	srv, err := servertest.Run(t.Context(), servertest.Options{DSN: "sqlite://" + db})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if left := opened(t, db); len(left) != 0 {
		t.Errorf("files still open: %v", left)
	}
	if _, err := os.Stat(db + "-wal"); err == nil {
		t.Error("the write-ahead log was left behind")
	}
	files, err := os.ReadDir(os.TempDir())
	if err != nil || len(files) != 0 {
		t.Errorf("files left: %v, %v", files, err)
	}
}

// opened lists what this process has open of files that begin with prefix.
func opened(t *testing.T, prefix string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil // not Linux
	}
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// stacks counts the goroutines by the function that started them.
func stacks() map[string]int {
	buf := make([]byte, 16<<20)
	count := map[string]int{}
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		lines := strings.Split(strings.TrimSpace(g), "\n")
		count[lines[len(lines)-1]]++
	}
	return count
}

func newStacks(before, after map[string]int) (left []string) {
	for where, n := range after {
		if n > before[where] {
			left = append(left, fmt.Sprintf("%d more at %s", n-before[where], where))
		}
	}
	return left
}

func TestRunFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if srv, err := servertest.Run(ctx, servertest.Options{DSN: "nonsense"}); err == nil {
		srv.Close()
		t.Error("started on nonsense")
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		srv, err := servertest.Run(b.Context(), servertest.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := srv.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPods makes a pod as soon as the server is there. Where no controllers run there is
// no account for it, and it needs none.
func TestPods(t *testing.T) {
	for _, c := range []struct {
		name    string
		o       servertest.Options
		account string
		refused bool
	}{
		{"no controllers", servertest.Options{}, "", false},
		{"controllers", servertest.Options{Controllers: []string{"*"}}, "default", false},
		{"none by name", servertest.Options{Controllers: []string{"none"}}, "", false},
		{"others", servertest.Options{Controllers: []string{"namespace", "garbagecollector"}}, "", false},
		{"that of accounts", servertest.Options{Controllers: []string{"serviceaccount-controller"}}, "default", false},
		{"nobody makes accounts", servertest.Options{DisableAdmissionPlugins: []string{}}, "", true},
		{"the plugin is named", servertest.Options{EnableAdmissionPlugins: []string{"ServiceAccount"}}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pods := kubernetes.NewForConfigOrDie(servertest.Start(t, c.o).Config).CoreV1().Pods("default")
			pod, err := pods.Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}, metav1.CreateOptions{})
			if c.refused != apierrors.IsForbidden(err) || !c.refused && err != nil {
				t.Fatalf("create: %v", err)
			}
			if got := pod.Spec.ServiceAccountName; got != c.account {
				t.Errorf("account %q, want %q", got, c.account)
			}
			if len(pod.Spec.Tolerations) != 2 && !c.refused {
				t.Errorf("tolerations %v", pod.Spec.Tolerations)
			}
		})
	}
}

// output is a test's, as far as Log needs it.
type output struct{ strings.Builder }

func (o *output) Output() io.Writer { return o }

// A server in a test is silent unless its log is asked for.
func TestLog(t *testing.T) {
	var out output
	srv, err := servertest.Run(t.Context(), servertest.Options{Log: servertest.Log(&out)})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"INFO  starting version=", "INFO  ready url=" + srv.URL() + " ", "INFO  stopped took="} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
