package changelog

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// ErrHalfCopied says that a Copy into a log was not finished. The log is not to be served: either
// the same Copy goes on, or the log is emptied.
var ErrHalfCopied = errors.New("the database holds a part of a copy that was not finished")

// Marks that Copy leaves in its target.
const (
	MarkCopying = "copying"       // while it runs: the source's cluster id
	MarkAbove   = "copying-above" // while it runs: all rows have higher revisions than this one
	MarkRun     = "copying-run"   // while it runs: which Copy or Intake writes to the target
	MarkOrigin  = "origin/"       // and a cluster id: objects were copied from that log, which was at the value's revision
	MarkBrought = "brought"       // rows up to this one came with a Copy or an Intake
)

// Brought returns the last row that came with a Copy or an Intake, 0 if none has.
func Brought(ctx context.Context, log Log) (int64, error) {
	marks, err := log.Marks(ctx)
	if err != nil || marks[MarkBrought] == "" {
		return 0, err
	}
	return strconv.ParseInt(marks[MarkBrought], 10, 64)
}

// HalfCopied returns ErrHalfCopied if a Copy into log was not finished, else nil, or why
// the marks cannot be read.
func HalfCopied(ctx context.Context, log Log) error {
	marks, err := log.Marks(ctx)
	if err == nil && IsHalfCopied(marks) {
		err = ErrHalfCopied
	}
	return err
}

// IsHalfCopied says whether marks are those of a log into which a Copy was not finished.
func IsHalfCopied(marks map[string]string) bool { return marks[MarkCopying] != "" }

// CopiedFrom says whether the objects of log were copied from the log with that cluster
// id, directly or by way of others.
func CopiedFrom(ctx context.Context, log Log, clusterID string) (bool, error) {
	marks, err := log.Marks(ctx)
	return marks[MarkOrigin+clusterID] != "", err
}

// Descent returns the marks of a log whose objects come from the log with that cluster id, which was at
// revision and had the marks inherited.
func Descent(clusterID string, revision int64, inherited map[string]string) map[string]string {
	marks := map[string]string{MarkOrigin + clusterID: strconv.FormatInt(revision, 10)}
	for name, value := range inherited {
		if strings.HasPrefix(name, MarkOrigin) {
			marks[name] = value
		}
	}
	return marks
}
