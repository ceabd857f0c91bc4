package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/plinth-io/plinth/cmd/plinth/units"
	serverstatus "github.com/plinth-io/plinth/server/status"
)

const (
	largestShown = 5 // resources
	faultsShown  = 5
	backupsShown = 5
)

// printServer prints a line about each part of what plinth tells of itself, if it does.
func (s *status) printServer(line func(name, format string, args ...any)) {
	if s.Writes == nil {
		return
	}
	line("Writes", "%s", writesText(s.Writes))
	line("Reads", "%s", readsText(s.Reads))
	line("Watches", "%s", watchesText(s.Watches))
	line("Compaction", "%s", compactionText(*s.Database.CompactionBehind))
	if s.Backups != nil {
		line("Backups", "%s", backupsText(s.Backups))
	}
	if len(s.Alarms) == 0 {
		line("Alarms", "none")
	}
	for i, a := range s.Alarms {
		line(titleOnce("Alarms", i), "%s since %s: %s", a.Name, stamp(a.Since), detailed(a.Text, a.Detail))
	}
	if len(s.Faults) == 0 {
		line("Faults", "none since %s", stamp(*s.Started))
	}
	for i, f := range s.Faults[:min(len(s.Faults), faultsShown)] {
		line(titleOnce("Faults", i), "%s", faultText(&f))
	}
}

// titleOnce is the title of the first of several lines.
func titleOnce(title string, i int) string {
	if i > 0 {
		return ""
	}
	return title
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func detailed(text, detail string) string {
	if detail == "" {
		return text
	}
	return text + " (" + detail + ")"
}

// writesText tells of the last minute.
func writesText(w *serverstatus.Writes) string {
	if w.PerSecond == 0 {
		return fmt.Sprintf("none in the last minute; %d since the start", w.Changes)
	}
	return fmt.Sprintf("%.1f per second, %.1f to a transaction of %s; 99%% of all transactions took at most %s",
		w.PerSecond, w.Batch, durationText(w.Seconds), durationText(w.P99))
}

func readsText(r *serverstatus.Reads) string {
	if r.PerSecond == 0 {
		return "from memory; the database was not asked for its newest revision in the last minute"
	}
	return fmt.Sprintf("from memory; the database is asked for its newest revision %.1f times per second, which takes %s", r.PerSecond, durationText(r.Seconds))
}

func watchesText(w *serverstatus.Watches) string {
	if w.Slowest == nil {
		return fmt.Sprintf("%d, none behind", w.Open)
	}
	where := "memory"
	if w.Slowest.FromLog {
		where = "the database"
	}
	return fmt.Sprintf("%d; the slowest is %d revisions behind for %s, reads from %s, and watches %s",
		w.Open, w.Slowest.Behind, durationText(w.Slowest.For), where, w.Slowest.Prefix)
}

func compactionText(seconds float64) string {
	if seconds < 1 {
		return "not behind"
	}
	return "behind for " + durationText(seconds)
}

func backupsText(b *serverstatus.Backups) string {
	text := "none yet"
	switch {
	case b.Fault != "" && b.Read.IsZero():
		return "the folder cannot be read: " + b.Fault
	case len(b.Files) > 0:
		text = fmt.Sprintf("%d, the newest of %s", b.Count, stamp(b.Files[0].Time))
	}
	if b.Fault != "" {
		text += fmt.Sprintf("; the folder cannot be read since %s: %s", stamp(b.Read), b.Fault)
	}
	return text
}

func faultText(f *serverstatus.Fault) string {
	switch {
	case f.Until.IsZero():
		return fmt.Sprintf("%s since %s: %s", f.Kind, stamp(f.Since), f.Text)
	case f.Until.Equal(f.Since):
		return fmt.Sprintf("%s at %s: %s", f.Kind, stamp(f.Since), f.Text)
	}
	return fmt.Sprintf("%s at %s for %s: %s", f.Kind, stamp(f.Since), durationText(f.Until.Sub(f.Since).Seconds()), f.Text)
}

// durationText has two or three digits.
func durationText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func (d *databaseStatus) keptText() string {
	if d.Kept == nil || *d.Kept == 0 {
		return ""
	}
	if d.KeptBytes != nil && d.KeptBound != nil {
		return fmt.Sprintf("; --keep keeps %d more, %s of at most %s", *d.Kept, units.Bytes(*d.KeptBytes), units.Bytes(*d.KeptBound))
	}
	return fmt.Sprintf("; --keep keeps %d more", *d.Kept)
}

// seenText says how old what a replica says of itself is: one that was killed is listed until its Lease ends.
func seenText(r *serverstatus.Replica) string {
	ago := time.Since(r.Seen).Round(time.Second)
	if r.Asked || ago < time.Second {
		return "now"
	}
	return ago.String() + " ago"
}

// printTables prints the replicas, the resources that take the most, and the newest backups.
func (s *status) printTables(w io.Writer) error {
	if len(s.Replicas) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\nREPLICA\tADDRESS\tVERSION\tSINCE\tSEEN\tREVISION\tLAG\n")
	for _, r := range s.Replicas {
		name := r.Name
		if r.Asked {
			name += " (asked)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", name, orDash(r.Address), orDash(r.Version), stamp(r.Since), seenText(&r), r.Revision, durationText(r.Lag))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprint(table, "\nLARGEST\tOBJECTS\tSIZE\n")
	for _, r := range s.Resources[:min(len(s.Resources), largestShown)] {
		fmt.Fprintf(table, "%s\t%d\t%s\n", r.Name, r.Objects, units.Bytes(r.Bytes))
	}
	s.printBackups(table)
	return table.Flush()
}

// printBackups prints the newest backups.
func (s *status) printBackups(w *tabwriter.Writer) {
	if s.Backups == nil || len(s.Backups.Files) == 0 {
		return
	}
	_ = w.Flush() // the columns of the table before are not those of this one
	fmt.Fprint(w, "\nBACKUP\tTAKEN\tREVISION\tSIZE\n")
	for _, f := range s.Backups.Files[:min(len(s.Backups.Files), backupsShown)] {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", printable(f.Name), stamp(f.Time), f.Revision, units.Bytes(f.Bytes))
	}
}
