package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/server/apitest"
)

// TestDatabaseDiskFull fills the disk under a server with SQLite, restarts it there with another
// address and another name, so that kubeconfig and certificate would have to be written
// again, and deletes its way out of it with the API alone.
func TestDatabaseDiskFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=88m,mode=0700"); err != nil {
		t.Skipf("LOUD: a full disk is not tested, because mounting is not permitted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	config := Config{DataDir: dir, DSN: "sqlite://" + filepath.Join(dir, "plinth.db") + "?reserve=8MiB", History: 2 * time.Second, Log: logTo(t)}
	s, client := startOn(t, config)
	ctx := t.Context()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "room"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return held(dir) })

	refused := fillUp(t, client)
	if apierrors.ReasonForError(refused) != metav1.StatusReasonServiceUnavailable || !strings.Contains(refused.Error(), "only deletes are taken") {
		t.Errorf("refused with %v", refused)
	}
	if delay, retry := apierrors.SuggestsClientDelay(refused); retry {
		t.Errorf("clients are told to try again in %d s", delay)
	}
	until(t, func() bool {
		return !readyz(client) && strings.Contains(metricsOf(t, client), "plinth_database_full 1")
	})
	until(t, func() bool {
		events, err := client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=DatabaseDiskFull"})
		return err == nil && len(events.Items) == 1
	})
	hog(t, filepath.Join(dir, "hog"))

	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	config.SANs = []string{"another.example.com"}
	_, client = startOn(t, config)
	maps := client.CoreV1().ConfigMaps("room")
	before, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil || len(before.Items) < 50 {
		t.Fatalf("%d ConfigMaps, %v", len(before.Items), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); left != nil {
		t.Errorf("left behind: %v", left)
	}
	until(t, func() bool { // if there is too little room it is told to wait for compaction
		return client.CoreV1().Namespaces().Delete(ctx, "room", metav1.DeleteOptions{}) == nil
	})
	until(t, func() bool {
		_, err := client.CoreV1().Namespaces().Get(ctx, "room", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	until(t, func() bool { return readyz(client) && held(dir) })
	maps = client.CoreV1().ConfigMaps("default")
	until(t, func() bool { // compaction may use up the room once more
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "after"}}, metav1.CreateOptions{})
		return err == nil
	})
}

func startOn(t *testing.T, config Config) (*Server, *kubernetes.Clientset) {
	t.Helper()
	s := New(config)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, kubernetes.NewForConfigOrDie(s.RESTConfig())
}

// fillUp creates ConfigMaps until one is refused, and returns why.
func fillUp(t *testing.T, client kubernetes.Interface) error {
	t.Helper()
	data := string(bytes.Repeat([]byte{'x'}, 200_000))
	for i := range 1000 {
		_, err := client.CoreV1().ConfigMaps("room").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%04d", i)}, Data: map[string]string{"a": data},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	t.Fatal("the disk is never full")
	return nil
}

// hog takes the rest of a disk at once.
func hog(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	until(t, func() bool { // a server may write between the two calls
		var s syscall.Statfs_t
		if err := syscall.Fstatfs(int(f.Fd()), &s); err != nil {
			t.Fatal(err)
		}
		if s.Bavail == 0 {
			return true
		}
		err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(s.Bavail)*s.Bsize)
		if err != nil && err != syscall.ENOSPC {
			t.Fatal(err)
		}
		return err == nil
	})
}

func held(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "plinth.db.reserve"))
	return err == nil
}

func readyz(client kubernetes.Interface) bool {
	code := 0
	client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(context.Background()).StatusCode(&code)
	return code == http.StatusOK
}

func metricsOf(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	text, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(context.Background())
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// until waits for something that happens soon.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	apitest.Eventually(t, "it comes to that", ok)
}
