package logging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/logging"
)

// record is one with everything that may be in one, at a time in another zone.
func record(t *testing.T, logger *slog.Logger, level slog.Level) {
	t.Helper()
	at := time.Date(2026, 11, 22, 9, 0, 0, 123456789, time.FixedZone("", 2*60*60))
	r := slog.NewRecord(at, level, "it is\nas it\x1b[31m is", 0)
	r.AddAttrs(slog.String("url", "https://127.0.0.1:6443"), slog.Duration("took", 1234567*time.Microsecond), slog.Bool("new", true),
		slog.Any("err", errors.New("two\nlines")), slog.String("msg", "mine"), slog.Any("list", []string{"a", "b"}))
	if err := logger.Handler().Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func TestFormats(t *testing.T) {
	const attributes = ` url=https://127.0.0.1:6443 took=1.235s new=true err="two\nlines" msg=mine list="[a b]"` + "\n"
	const message = `it is\nas it\x1b[31m is`
	for _, test := range []struct {
		format logging.Format
		level  slog.Level
		want   string
	}{
		{logging.Text, slog.LevelInfo, "2026-11-22T07:00:00.123Z INFO  " + message + attributes},
		{"", slog.LevelWarn, "2026-11-22T07:00:00.123Z WARN  " + message + attributes},
		{logging.Text, slog.LevelError, "2026-11-22T07:00:00.123Z ERROR " + message + attributes},
		{logging.Text, slog.LevelDebug - 3, "2026-11-22T07:00:00.123Z DEBUG " + message + attributes},
		{logging.JSON, slog.LevelInfo, `{"time":"2026-11-22T07:00:00.123Z","level":"INFO","msg":"it is\nas it\u001b[31m is","url":"https://127.0.0.1:6443","took":1.234567,"new":true,"err":"two\nlines","msg":"mine","list":["a","b"]}` + "\n"},
		{logging.JSON, slog.LevelDebug - 3, `{"time":"2026-11-22T07:00:00.123Z","level":"DEBUG","msg":"it is\nas it\u001b[31m is","url":"https://127.0.0.1:6443","took":1.234567,"new":true,"err":"two\nlines","msg":"mine","list":["a","b"]}` + "\n"},
	} {
		var out bytes.Buffer
		record(t, logging.New(&out, logging.Options{Format: test.format}), test.level)
		if out.String() != test.want {
			t.Errorf("%s:\n%swant\n%s", test.format, &out, test.want)
		}
	}
}

// A record is written at once, and nothing follows a message without attributes.
func TestWhole(t *testing.T) {
	var writes [][]byte
	logger := logging.New(writerFunc(func(p []byte) { writes = append(writes, bytes.Clone(p)) }), logging.Options{})
	logger.With("a", 1).WithGroup("g").Info("grouped", "b", 2)
	logger.Info("bare")
	logger.Debug("too much")
	if len(writes) != 2 || !bytes.HasSuffix(writes[0], []byte("Z INFO  grouped a=1 g.b=2\n")) || !bytes.HasSuffix(writes[1], []byte("Z INFO  bare\n")) {
		t.Errorf("wrote %q", writes)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func TestVerbosity(t *testing.T) {
	for verbosity, want := range map[logging.Verbosity]int{-1: 1, 0: 1, 1: 3, 2: 4} {
		var out bytes.Buffer
		logger := logging.New(&out, logging.Options{Format: logging.JSON, Verbosity: verbosity})
		for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug, slog.LevelDebug - 1, slog.LevelDebug - 2} {
			logger.Log(t.Context(), level, "x")
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		for _, line := range lines {
			if !json.Valid([]byte(line)) {
				t.Errorf("not JSON: %s", line)
			}
		}
		if len(lines) != want {
			t.Errorf("verbosity %d shows %d of the records, want %d", verbosity, len(lines), want)
		}
	}
}

func TestFlags(t *testing.T) {
	var v logging.Verbosity
	for _, text := range []string{"-1", "x", "", "1.5", "99999999"} {
		if err := v.Set(text); err == nil || v != 0 {
			t.Errorf("%q is taken for %d", text, v)
		}
	}
	if err := v.Set("4"); err != nil || v.String() != "4" {
		t.Errorf("%v, %v", &v, err)
	}
	var f logging.Format
	if err := f.Set("json"); err != nil || f != logging.JSON {
		t.Errorf("%q, %v", f, err)
	}
	if err := f.Set("xml"); err == nil || err.Error() != "write text or json" || f != logging.JSON {
		t.Errorf("%q, %v", f, err)
	}
}
