package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
)

// TestFloor writes with the bare driver and reads the rows through the dialect.
func TestFloor(t *testing.T) {
	for name, dsn := range map[string]func() string{
		"sqlite":   func() string { return "sqlite://x.db?durability=normal" },
		"postgres": func() string { return logtest.Postgres(t) },
		"mysql":    func() string { return logtest.MariaDB(t) },
	} {
		t.Run(name, func(t *testing.T) { testFloor(t, dsn()) })
	}
}

func testFloor(t *testing.T, dsn string) {
	ctx := context.Background()
	s, err := measure.NewScratch(ctx, dsn, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Drop(ctx); err != nil {
			t.Errorf("drop: %v", err)
		}
		if dialects.Scheme(s.DSN) == "sqlite" {
			return // it would be made anew
		}
		if log, err := dialects.Open(ctx, s.DSN, dialects.Options{}); err == nil {
			log.Close()
			t.Error("the scratch database is still there")
		}
	})
	f, err := openFloor(ctx, s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	version, settings, err := f.describe(ctx)
	if err != nil || version == "" || !strings.Contains(settings, "=") {
		t.Errorf("described as %q, %q, %v", version, settings, err)
	}
	var last int64
	for _, rows := range []int{1, 100} {
		l, err := floorLoad(ctx, f, &last, rows, time.Millisecond)
		if err != nil || l.Ops < rows || l.Ops%rows != 0 {
			t.Fatalf("%d rows a commit: %d rows, %v", rows, l.Ops, err)
		}
	}
	if err := f.close(ctx); err != nil {
		t.Error(err)
	}
	checkFloor(t, s.DSN, last)
}

func checkFloor(t *testing.T, dsn string, last int64) {
	ctx := context.Background()
	log, err := dialects.Open(ctx, dsn, dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := log.Rows(ctx, 0, int(last)+1)
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	if int64(len(rows)) != last {
		t.Fatalf("%d rows instead of %d", len(rows), last)
	}
	for i, r := range rows {
		n := int64(i + 1)
		if r.Revision != n || r.CreateRevision != n || r.Key != keyOf(n) || string(r.Value) != string(valueOf(n)) || r.Deleted || r.At == 0 {
			t.Fatalf("row %d is %d %d %s, %d bytes", n, r.Revision, r.CreateRevision, r.Key, len(r.Value))
		}
	}
}

func TestValue(t *testing.T) {
	if n := len(valueOf(123456)); n != 1024 {
		t.Errorf("a value has %d bytes", n)
	}
}
