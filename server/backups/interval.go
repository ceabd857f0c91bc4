package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plinth-io/plinth/server/metrics"
	"github.com/plinth-io/plinth/sqlstore/backup"
)

// Interval says which files are made.
type Interval struct {
	Every time.Duration // 0: none
	// Dir is where they are; it is made.
	Dir string
	// Keep is how many files of the cluster are kept; 0: all.
	Keep int
}

// figures are the metrics.
type figures struct{ success, failure, bytes prometheus.Gauge }

func newFigures() figures {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return figures{
		success: gauge("plinth_backup_success_timestamp_seconds", "When this process, or one before it, last made a file of a backup, in seconds since 1970; 0: not yet."),
		failure: gauge("plinth_backup_failure_timestamp_seconds", "When this process last failed to make a file of a backup, in seconds since 1970; 0: not yet."),
		bytes:   gauge("plinth_backup_bytes", "Size of the last file of a backup that this process has made."),
	}
}

// Collectors are the metrics.
func (b *Backups) Collectors() []prometheus.Collector {
	return []prometheus.Collector{b.figures.success, b.figures.failure, b.figures.bytes}
}

// Last returns when this process last made a file, or found that of an earlier one, and when it last failed
// to; zero times if it has not.
func (b *Backups) Last() (success, failure time.Time) {
	return metrics.TimeOf(b.figures.success), metrics.TimeOf(b.figures.failure)
}

// WriteTo makes a file in the folder and removes those that are too many. It waits for another backup.
func (b *Backups) WriteTo(ctx context.Context, o Interval) error {
	select {
	case <-b.idle:
		defer func() { b.idle <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	begun := time.Now()
	name, taken, err := b.file(ctx, o.Dir)
	if err != nil {
		if ctx.Err() == nil {
			b.figures.failure.SetToCurrentTime()
			b.config.Logger.Error("a backup failed; it is tried again", "dir", o.Dir, "err", err)
		}
		return err
	}
	b.figures.success.SetToCurrentTime()
	b.figures.bytes.Set(float64(taken.Size))
	b.config.Logger.Info("made a backup", "file", filepath.Join(o.Dir, name), "objects", taken.Rows, "revision", taken.Revision, "bytes", taken.Size, "took", time.Since(begun))
	defer b.listed.forget()
	if err := b.tidy(o); err != nil {
		b.config.Logger.Warn("old backups could not be removed", "dir", o.Dir, "err", err)
	}
	return nil
}

// Remember makes the metrics tell of the newest file of the folder, which an earlier process may have made.
func (b *Backups) Remember(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there are none yet
	}
	newest := time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && b.owns(e.Name()) && info.ModTime().After(newest) {
			newest = info.ModTime()
			b.figures.success.Set(float64(newest.Unix()))
			b.figures.bytes.Set(float64(info.Size()))
		}
	}
}

// Made tells whether a server that shares the folder has made a file within the interval, or is at one.
func (b *Backups) Made(o Interval) bool {
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			info, err := e.Info()
			return err == nil && time.Since(info.ModTime()).Abs() < writesWithin
		}
		at, ok := b.timeOf(e.Name())
		return ok && time.Since(at).Abs() < o.Every // another server's clock may be ahead
	})
}

// timeOf returns the time in the name of a file of this cluster.
func (b *Backups) timeOf(name string) (at time.Time, ok bool) {
	if !b.owns(name) {
		return at, false
	}
	text, _, _ := strings.Cut(strings.TrimPrefix(name, b.prefix()), "-")
	at, err := time.Parse(stamp, text)
	return at, err == nil
}

// owns says whether a file is a backup of this cluster.
func (b *Backups) owns(name string) bool {
	return strings.HasPrefix(name, b.prefix()) && strings.HasSuffix(name, extension)
}

func (b *Backups) file(ctx context.Context, dir string) (name string, taken backup.Taken, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", taken, err
	}
	err = WriteFile(dir, func(to io.Writer) (string, error) {
		if taken, err = b.take(ctx, to, false); err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s%s-r%d%s", b.prefix(), taken.Time.Format(stamp), taken.Revision, extension)
		return name, nil
	})
	return name, taken, err
}

const (
	stamp     = "20060102T150405.000Z"
	extension = ".plinth"
	// staleAfter is how long after the last write to it an incomplete file is taken for one that a
	// process has left.
	staleAfter = time.Hour
	// writesWithin is for how long nothing is written to a file at most, usually, that a process is at.
	writesWithin = time.Minute
)

// prefix is what names of the cluster's files begin with. They sort by time.
func (b *Backups) prefix() string { return "plinth-" + b.config.Source.ClusterID() + "-" }

// tidy removes the oldest files, and what processes have left that ended in the middle.
func (b *Backups) tidy(o Interval) error {
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		return err
	}
	var remove, files []string
	for _, e := range entries {
		switch name := e.Name(); {
		case b.owns(name):
			files = append(files, name)
		case strings.HasPrefix(name, tempPrefix):
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleAfter {
				remove = append(remove, name)
			}
		}
	}
	slices.Sort(files)
	if o.Keep > 0 && len(files) > o.Keep {
		remove = append(remove, files[:len(files)-o.Keep]...)
	}
	var failed error
	for _, name := range remove {
		if err := os.Remove(filepath.Join(o.Dir, name)); !errors.Is(err, fs.ErrNotExist) { // another server tidies, too
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
