package audit

import (
	"fmt"
	"io"
	"os"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	apiaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/server/options"
	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"
)

// file is upstream's log backend (plugin/pkg/audit/log) for the options that most logs have: JSON
// in the newest version, written before a request goes on.
type file struct {
	group
	strict bool // an event that cannot be written refuses its request
	codec  runtime.Encoder
	lines  sync.Pool // of *[]byte
}

// ownFile returns the backend for o's file, or nil if upstream's must write it.
func ownFile(o *options.AuditLogOptions) (apiaudit.Backend, error) {
	blocking := o.BatchOptions.Mode == options.ModeBlocking || o.BatchOptions.Mode == options.ModeBlockingStrict
	plain := o.Format == pluginlog.FormatJson && o.GroupVersionString == auditv1.SchemeGroupVersion.String()
	if o.Path == "" || !blocking || !plain || o.TruncateOptions.Enabled {
		return nil, nil
	}
	out, err := openFile(o)
	if err != nil {
		return nil, err
	}
	return &file{
		group:  group{out: out},
		strict: o.BatchOptions.Mode == options.ModeBlockingStrict,
		codec:  apiaudit.Codecs.LegacyCodec(auditv1.SchemeGroupVersion),
	}, nil
}

// openFile returns what events are written to. Only a regular file is rotated: of a device or a
// pipe the name alone would be moved away.
func openFile(o *options.AuditLogOptions) (io.Writer, error) {
	if o.Path == "-" {
		return os.Stdout, nil
	}
	if info, err := os.Stat(o.Path); err == nil && !info.Mode().IsRegular() {
		return os.OpenFile(o.Path, os.O_WRONLY, 0)
	}
	return &lumberjack.Logger{
		Filename: o.Path, MaxAge: o.MaxAge, MaxBackups: o.MaxBackups, MaxSize: o.MaxSize, Compress: o.Compress,
	}, nil
}

// ProcessEvents writes events, each in a line.
func (f *file) ProcessEvents(events ...*auditinternal.Event) bool {
	written := true
	for _, e := range events {
		if err := f.log(e); err != nil {
			apiaudit.HandlePluginError(pluginlog.PluginName, err, e)
			written = false
		}
	}
	return written || !f.strict
}

// maxKeptLine bounds the buffers that wait for the next event.
const maxKeptLine = 16 << 10

func (f *file) log(e *auditinternal.Event) error {
	buf, _ := f.lines.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	text, ok := line((*buf)[:0], e)
	if !ok {
		var err error
		if text, err = runtime.Encode(f.codec, e); err != nil {
			return err
		}
	}
	err := f.write(text)
	if cap(text) <= maxKeptLine {
		*buf = text
		f.lines.Put(buf)
	}
	return err
}

// Run has nothing to start.
func (f *file) Run(<-chan struct{}) error { return nil }

// Shutdown closes the file; standard output stays open.
func (f *file) Shutdown() {
	if c, ok := f.out.(io.Closer); ok && f.out != os.Stdout {
		_ = c.Close()
	}
}

func (f *file) String() string { return fmt.Sprintf("%s (strict: %v)", pluginlog.PluginName, f.strict) }
