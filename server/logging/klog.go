package logging

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Libraries makes the libraries of the process log to log: upstream's, which use klog, and
// those that use the standard library's packages log and log/slog. Their errors are errors
// until silence is called. Their other records are for developers and shown from verbosity 1
// on.
//
// Call it at the beginning of a program, in main or TestMain: the process has one of these
// logs, which the program shares, and it may not be changed while something is logged.
func Libraries(logger *slog.Logger, verbosity Verbosity) (silence func()) {
	f := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(f)
	_ = f.Set("v", strconv.Itoa(min(max(int(verbosity), 0), most))) // a number is always taken
	l := &libraries{logger: logger.With("source", "klog"), errors: slog.LevelError, silent: new(atomic.Bool)}
	klog.SetLogger(logr.New(l))
	// Most records of net/http and the like are about what a client did.
	slog.SetLogLoggerLevel(slog.LevelDebug)
	slog.SetDefault(logger)
	return func() { l.silent.Store(true) }
}

// Retrying returns a logger for upstream's code that retries after every failure, so that its
// errors need no attention.
func Retrying(logger *slog.Logger, name string) logr.Logger {
	return logr.New(&libraries{logger: logger.With("source", name), errors: slog.LevelDebug, silent: new(atomic.Bool)})
}

// libraries is the log of upstream's libraries.
type libraries struct {
	logger *slog.Logger
	errors slog.Level
	silent *atomic.Bool // the program ends: controllers that stop early log that as an error
}

// unimportant are prefixes of errors that are logged for developers only. Errors about a
// request are in its answer, too, and a client could fill the log with them. Errors of leader
// election come every two seconds while the database is away, and errors of decryption each time that
// an object is tried again: the log says both already. The garbage collector says with two errors that it
// goes on before it knows all objects, as it does on a slow machine. Controllers of --cluster that are ahead of their
// informers try again, a thousand times while a large Deployment grows.
var unimportant = []string{
	"Couldn't parse request", "failed to decrypt data", "Failed to convert options while estimating work",
	"Error initially creating lease lock", "Error retrieving lease lock", "Failed to update lease",
	"error retrieving resource lock", "Failed to update lock",
	"Unable to sync caches", "timed out waiting for dependency graph builder sync during GC sync",
}

// unimportantWithin are parts of such errors.
var unimportantWithin = []string{" is not as new as written version: "}

// unhandled is what upstream calls errors that have only a text of their own.
const unhandled = "Unhandled Error"

// Init implements logr.LogSink.
func (*libraries) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (l *libraries) Enabled(v int) bool { return l.logger.Enabled(context.Background(), level(v)) }

// Info implements logr.LogSink.
func (l *libraries) Info(v int, message string, values ...any) {
	l.logger.Log(context.Background(), level(v), strings.TrimSpace(message), attributes(values)...)
}

// level is the level of records at klog.V(v).
func level(v int) slog.Level { return slog.LevelDebug - slog.Level(v) }

// Error implements logr.LogSink.
func (l *libraries) Error(err error, message string, values ...any) {
	level := l.errorLevel(err, message)
	if !l.logger.Enabled(context.Background(), level) {
		return
	}
	all := attributes(values)
	if err != nil {
		all = append([]any{"err", err}, all...)
	}
	l.logger.Log(context.Background(), level, strings.TrimSpace(message), all...)
}

func (l *libraries) errorLevel(err error, message string) slog.Level {
	if l.silent.Load() {
		return slog.LevelDebug
	}
	if message == unhandled && err != nil {
		message = err.Error()
	}
	begins := func(part string) bool { return strings.HasPrefix(message, part) }
	contains := func(part string) bool { return strings.Contains(message, part) }
	if slices.ContainsFunc(unimportant, begins) || slices.ContainsFunc(unimportantWithin, contains) {
		return slog.LevelDebug
	}
	return l.errors
}

// attributes shows values as klog does: as text, not by their exported fields.
func attributes(values []any) []any {
	out := make([]any, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case error, string, bool, int, int32, int64, float64:
			out[i] = v
		default:
			out[i] = fmt.Sprint(v)
		}
	}
	return out
}

// WithValues implements logr.LogSink.
func (l *libraries) WithValues(values ...any) logr.LogSink {
	if !l.logger.Enabled(context.Background(), l.errors) {
		return l // the usual case: controllers make a logger for each step
	}
	return &libraries{l.logger.With(attributes(values)...), l.errors, l.silent}
}

// WithName implements logr.LogSink.
func (l *libraries) WithName(string) logr.LogSink { return l }
