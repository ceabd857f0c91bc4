package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plinth-io/plinth/server/upstream"
)

// What an import says: how far it is while it runs, and at its end a report of what was imported and what was not.

// telling returns a function that logs where an import that follows is, and what keeps any from going on.
func (o *importOptions) telling(logger *slog.Logger) func(upstream.Step) {
	inStep, ending := false, false
	return func(s upstream.Step) {
		away := s.Away.Round(time.Second)
		var why []any
		if s.Err != nil {
			why = append(why, "error", oneLine(s.Err))
		}
		if away > 0 { // what has just begun was never away
			why = append(why, "for", away)
		}
		switch {
		case s.Err != nil && s.Ending:
			logger.Warn("the rest cannot be taken now; trying again until another Ctrl-C, which ends at once and leaves a database that is not served", why...)
		case s.Err != nil && !o.follow:
			logger.Warn("cannot go on now; waiting", why...)
		case s.Err != nil:
			logger.Warn("cannot go on now; trying again", why...)
		case s.Back && s.Revision == 0: // within the objects
			logger.Info("goes on again", "after", away)
		case s.Back:
			logger.Info("goes on again", "after", away, "revision", s.Revision, "behind", s.Behind)
		case s.Ending && !ending:
			ending = true
			logger.Info("taking the rest; another Ctrl-C ends at once and leaves a database that is not served")
		case s.Ending:
			logger.Info("took the rest", "revision", s.Revision, "behind", s.Behind, "changes", s.Changes)
		case !inStep && s.Behind < nearlyInStep:
			inStep = true
			logger.Info("in step with the source; stop the kube-apiservers, then press Ctrl-C here", "revision", s.Revision, "behind", s.Behind)
		default:
			logger.Info("following", "revision", s.Revision, "behind", s.Behind, "changes", s.Changes)
		}
	}
}

// nearlyInStep is how many revisions an import may be behind for an end that takes no time.
const nearlyInStep = 1000

func notTaken(r upstream.Report) (n int) {
	for _, s := range r.NotTaken {
		n += len(s.Keys)
	}
	return n
}

// stillRuns returns the address of a kube-apiserver that had not stopped, or "".
func stillRuns(l *upstream.Layout, r upstream.Report) string {
	for _, s := range r.LeftOut {
		for _, key := range s.Keys {
			if at, found := strings.CutPrefix(key, l.Prefix()+"masterleases/"); found {
				return at
			}
		}
	}
	return ""
}

// print writes the report for people.
func (o *importOptions) print(w io.Writer, r upstream.Report) error {
	var b strings.Builder
	verb := "imported"
	if o.dryRun {
		verb = "would import"
	}
	printResources(&b, r.Resources, "from")
	printSkips(&b, "left out", r.LeftOut)
	printSkips(&b, "not taken", r.NotTaken)
	fmt.Fprintf(&b, "%s %d objects of %d resources; the revision of the source is %d\n", verb, r.Objects, len(r.Resources), r.Revision)
	if o.follow {
		b.WriteString("all changes up to there are taken; start plinth serve\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printResources prints one line for each resource, and from or to which other versions its objects were converted.
func printResources(b *strings.Builder, all []upstream.ResourceReport, fromOrTo string) {
	for _, of := range all {
		name := of.Resource
		if of.Group != "" {
			name += "." + of.Group
		}
		fmt.Fprintf(b, "%8d  %s", of.Objects, name)
		for _, version := range slices.Sorted(maps.Keys(of.Converted)) {
			fmt.Fprintf(b, ", %d converted %s %s", of.Converted[version], fromOrTo, version)
		}
		b.WriteByte('\n')
	}
}

// printSkips prints one line for each reason, with the first keys.
func printSkips(b *strings.Builder, what string, skips []upstream.SkipReport) {
	const most = 3
	for _, s := range skips {
		keys := strings.Join(s.Keys[:min(most, len(s.Keys))], " ")
		if len(s.Keys) > most {
			keys += " …"
		}
		fmt.Fprintf(b, "%8d  %s: %s: %s\n", len(s.Keys), what, printable(oneLine(errors.New(s.Why))), printable(keys))
	}
}
