package logging_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/plinth-io/plinth/server/logging"
)

// libraries has those of the process log to the returned buffer.
func libraries(t *testing.T, verbosity logging.Verbosity) (out *bytes.Buffer, silence func()) {
	t.Cleanup(func() { logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0) })
	out = new(bytes.Buffer)
	return out, logging.Libraries(logging.New(out, logging.Options{Verbosity: verbosity}), verbosity)
}

func TestLibraries(t *testing.T) {
	out, silence := libraries(t, 0)
	klog.Info("chatter")
	klog.Warning("chatter")
	klog.V(1).InfoS("chatter")
	log.Print("http: somebody hung up")
	klog.ErrorS(errors.New("of\ncaller"), "Couldn't parse request", "request", "EVIL")
	klog.ErrorS(errors.New("no key"), "failed to decrypt data")
	klog.ErrorS(nil, "Unable to sync caches", "controller", "garbage collector")
	klog.ErrorS(errors.New("timed out waiting for dependency graph builder sync during GC sync"), "Unhandled Error")
	klog.ErrorS(errors.New(`sync "default/web" failed with read version: 1132 is not as new as written version: 1523 for group resource pods`), "Unhandled Error")
	if out.Len() > 0 {
		t.Errorf("logged %s", out)
	}
	klog.ErrorS(errors.New("why\nnot"), "Something broke", "pod", klog.KRef("a", "b"))
	klog.Errorf("in the old style: %d", 1)
	klog.ErrorS(errors.New("broken"), "Unhandled Error")
	want := "Z ERROR Something broke source=klog err=\"why\\nnot\" pod=a/b\n"
	if got := out.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, want) || !strings.Contains(got, "Z ERROR in the old style: 1 source=klog\n") {
		t.Errorf("logged %s", got)
	}
	out.Reset()
	silence()
	if klog.Error("late"); out.Len() > 0 {
		t.Errorf("logged %s", out)
	}
}

func TestVerboseLibraries(t *testing.T) {
	out, silence := libraries(t, 2)
	inside := klog.FromContext(context.Background()).WithValues("shard", 7)
	inside.V(2).Info("in a context")
	inside.V(3).Info("too much")
	klog.Info("plain")
	klog.V(2).InfoS("structured", "n", 1)
	klog.V(3).Info("too much")
	log.Print("http: somebody hung up")
	slog.Info("of the standard library")
	silence()
	klog.Error("late")
	for _, want := range []string{"DEBUG in a context source=klog shard=7\n", "DEBUG plain source=klog\n", "DEBUG structured source=klog n=1\n",
		"DEBUG http: somebody hung up\n", "INFO  of the standard library\n", "DEBUG late source=klog\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "too much") {
		t.Errorf("logged\n%s", out)
	}
}

func TestRetrying(t *testing.T) {
	for verbosity, want := range []string{"", "DEBUG failed source=garbage err=no n=1\n"} {
		var out bytes.Buffer
		l := logging.Retrying(logging.New(&out, logging.Options{Verbosity: logging.Verbosity(verbosity)}), "garbage")
		l.Error(errors.New("no"), "failed", "n", 1)
		if got := out.String(); got != want && (want == "" || !strings.HasSuffix(got, want)) {
			t.Errorf("verbosity %d: %s", verbosity, got)
		}
	}
}
