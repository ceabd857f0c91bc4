package logging

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestSeldom(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	d := &Seldom{}
	for i := range 3 * seldomMost {
		d.Log(logger, slog.LevelWarn, "again", "n", i)
	}
	if n := strings.Count(out.String(), "\n"); n != seldomMost {
		t.Errorf("%d records", n)
	}
	d.begun = time.Now().Add(-seldomEvery)
	d.Log(logger, slog.LevelWarn, "again", "n", "last")
	if want := fmt.Sprintf("n=last leftOut=%d\n", 2*seldomMost); !strings.HasSuffix(out.String(), want) {
		t.Errorf("no %s in\n%s", want, out.String())
	}
}
