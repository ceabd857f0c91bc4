// Package quiet keeps what upstream's libraries tell their own developers out of the log of a
// program that has a server inside.
package quiet

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// libraries is where upstream's libraries log to: all of them to klog, which is one for
// the process. Errors pass, each on one line; the rest is for upstream's developers.
type libraries struct {
	w      io.Writer
	silent *atomic.Bool // at the end a controller that is told to stop early calls that an error
}

// Libraries makes upstream's libraries log errors only, to w, until silence is called and then
// nothing. It is for the beginning of a program, main or TestMain: they all log by klog, which
// is one for the process, is the program's as well, and may not be changed while somebody logs.
func Libraries(w io.Writer) (silence func()) {
	l := libraries{w, new(atomic.Bool)}
	klog.SetLogger(logr.New(l))
	return func() { l.silent.Store(true) }
}

// unimportant begin the errors that say something about a request, which its answer says
// as well: anybody could fill the log with them.
var unimportant = []string{"Couldn't parse request", "error initially creating leader election record"}

// Init implements logr.LogSink.
func (libraries) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (libraries) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (libraries) Info(int, string, ...any) {}

// WithValues implements logr.LogSink.
func (l libraries) WithValues(...any) logr.LogSink { return l }

// WithName implements logr.LogSink.
func (l libraries) WithName(string) logr.LogSink { return l }

// Error implements logr.LogSink.
func (l libraries) Error(err error, message string, values ...any) {
	if l.silent.Load() {
		return
	}
	for _, prefix := range unimportant {
		if strings.HasPrefix(message, prefix) {
			return
		}
	}
	var line strings.Builder
	fmt.Fprintf(&line, "%s %s", time.Now().Format("2006/01/02 15:04:05"), strings.TrimSpace(message))
	if err != nil {
		fmt.Fprintf(&line, ": %v", err)
	}
	for i := 0; i+1 < len(values); i += 2 {
		fmt.Fprintf(&line, " %v=%v", values[i], values[i+1])
	}
	fmt.Fprintln(l.w, strings.ReplaceAll(line.String(), "\n", " "))
}
