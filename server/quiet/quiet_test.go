package quiet_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/plinth-io/plinth/server/quiet"
)

func TestLibraries(t *testing.T) {
	defer func() { quiet.Libraries(os.Stderr) }()
	var out bytes.Buffer
	silence := quiet.Libraries(&out)
	klog.Info("chatter")
	klog.Warning("chatter")
	klog.ErrorS(errors.New("of\ncaller"), "Couldn't parse request", "request", "EVIL")
	if out.Len() > 0 {
		t.Errorf("logged %s", &out)
	}
	klog.ErrorS(errors.New("why\nnot"), "Something broke", "pod", "a/b")
	klog.Errorf("in the old style: %d", 1)
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "Something broke: why not pod=a/b\n") || !strings.Contains(got, "in the old style: 1\n") {
		t.Errorf("logged %s", got)
	}
	out.Reset()
	silence()
	if klog.Error("late"); out.Len() > 0 {
		t.Errorf("logged %s", &out)
	}
}
