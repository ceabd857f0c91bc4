package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/cmd/plinth/units"
	"github.com/plinth-io/plinth/dialects"
	serverstatus "github.com/plinth-io/plinth/server/status"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const statusHelp = `Show whether a plinth is ready, its version and database, and the size of the database.

plinth is asked with an ordinary kubeconfig: the one that --kubeconfig names, or that is in
--data-dir, or that the variable KUBECONFIG names, else that in the default data directory, else
~/.kube/config. --server asks another plinth with the same credentials, such as one of several
replicas. Facts that need the right to read metrics are left out for other users.

An alarm is a condition that an operator should correct before it becomes a fault, such as a disk
that fills. It does not change the exit code.

With --dsn the command reads the database itself, whether a plinth serves it or not: nothing is
created, changed or locked. For a SQLite database it has to run on the same machine.

The exit code is 0 if plinth is ready (with --dsn: if there is a database of plinth's), 1 if it is
not or cannot be reached, and 2 if the command was wrong.`

// Status is what the command prints. Fields that are not known are left out.
type status struct {
	Ready        *bool                `json:"ready,omitempty"` // not known if only a database is read
	Problems     []string             `json:"problems,omitempty"`
	Server       string               `json:"server,omitempty"`
	Version      string               `json:"version,omitempty"`
	Commit       string               `json:"commit,omitempty"`
	Kubernetes   string               `json:"kubernetesVersion,omitempty"`
	Database     databaseStatus       `json:"database"`
	Certificates map[string]time.Time `json:"certificates,omitempty"` // when each expires

	// What plinth tells of itself to those who may read its metrics.
	Time      *time.Time              `json:"time,omitempty"`
	Started   *time.Time              `json:"started,omitempty"`
	Alarms    []serverstatus.Alarm    `json:"alarms,omitempty"`
	Replicas  []serverstatus.Replica  `json:"replicas,omitempty"`
	Resources []serverstatus.Resource `json:"resources,omitempty"`
	Watches   *serverstatus.Watches   `json:"watches,omitempty"`
	Writes    *serverstatus.Writes    `json:"writes,omitempty"`
	Reads     *serverstatus.Reads     `json:"reads,omitempty"`
	Faults    []serverstatus.Fault    `json:"faults,omitempty"`
	Backups   *serverstatus.Backups   `json:"backups,omitempty"` // nil: that plinth makes none at intervals
}

type databaseStatus struct {
	Name      string `json:"name,omitempty"` // without its password
	ClusterID string `json:"clusterID,omitempty"`
	Objects   *int64 `json:"objects,omitempty"`
	Keys      *int64 `json:"keys,omitempty"` // instead, of plinth etcd
	Rows      *int64 `json:"rows,omitempty"`
	Revision  *int64 `json:"revision,omitempty"`
	Floor     *int64 `json:"floor,omitempty"`
	Bytes     *int64 `json:"bytes,omitempty"`
	FreeBytes *int64 `json:"freeBytes,omitempty"`
	Dead      *int64 `json:"deadRows,omitempty"`       // of Rows: old versions, which compaction deletes
	Kept      *int64 `json:"keptRows,omitempty"`       // by --keep
	KeptBytes *int64 `json:"keptBytes,omitempty"`      // of their keys and values, if they are bounded
	KeptBound *int64 `json:"keptBytesBound,omitempty"` // by --keep-size
	Usable    *bool  `json:"usable,omitempty"`

	CompactionBehind *float64 `json:"compactionBehindSeconds,omitempty"`
}

// statusQuery is the command's flags.
type statusQuery struct {
	kubeconfig, context, server, dataDir, dsn, output string
	timeout                                           time.Duration

	inNamed string // kubeconfig in the directory of the flag --data-dir, if that was given
}

func newStatus() *cobra.Command {
	var q statusQuery
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether plinth is ready, and what is in its database",
		Long:  statusHelp,
		Args:  noArgs,
		Example: `  plinth status
  plinth status --kubeconfig admin.conf -o json
  plinth status --server https://10.0.0.2:6443
  plinth status --dsn sqlite://plinth-data/plinth.db`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.inDataDir(cmd)
			return q.answer(cmd.Context(), cmd.OutOrStdout())
		},
	}
	addInOrder(cmd, append(q.serverFlags(),
		dsnFlag(&q.dsn, dsnToReadHelp),
		Flag{Name: "timeout", Set: period(&q.timeout, 10*time.Second), Help: "how long to wait for all answers"},
		outputFlag(&q.output, outputHelp, "json", "yaml"),
	)...)
	return cmd
}

// dsnToReadHelp is that of commands that ask a plinth or read its database.
const dsnToReadHelp = "`database` to read, as for serve, without asking a plinth"

// serverFlags say which plinth to ask.
func (q *statusQuery) serverFlags() []Flag {
	return []Flag{
		kubeconfigFlag(&q.kubeconfig),
		contextFlag(&q.context),
		serverFlag(&q.server, "`url` of a plinth to ask in place of that in the kubeconfig, such as https://10.0.0.2:6443"),
		dataDirFlag(&q.dataDir, dataDirUsage),
	}
}

// answer prints the status, and returns an error if plinth is not ready.
func (q *statusQuery) answer(ctx context.Context, stdout io.Writer) error {
	if err := q.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	ask := q.askServer
	if q.dsn != "" {
		ask = q.readDatabase
	}
	s, err := ask(ctx)
	var trust *trustError
	if s != nil && (q.output != "" || !errors.As(err, &trust)) { // which says all that there is
		if err := s.print(stdout, q.output); err != nil {
			return err
		}
	}
	return err
}

func (q *statusQuery) check() error {
	if err := checkOutput(q.output); err != nil {
		return err
	}
	if q.timeout <= 0 {
		return usagef("--timeout %v: write a duration above 0, such as 10s", q.timeout)
	}
	if q.dsn == "" {
		return nil
	}
	if q.kubeconfig != "" || q.context != "" || q.server != "" {
		return usagef("--dsn reads the database; --kubeconfig, --context and --server ask a server: write only one of them")
	}
	if err := dialects.Check(q.dsn, dialects.Options{}); err != nil {
		return usagef("--dsn: %v", err)
	}
	return nil
}

// readDatabase looks at a database without asking a server.
func (q *statusQuery) readDatabase(ctx context.Context) (*status, error) {
	found, err := dialects.Inspect(ctx, q.dsn, dialects.Options{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dialects.Describe(q.dsn), err)
	}
	s := &status{Database: databaseStatus{
		Name: dialects.Describe(q.dsn), ClusterID: found.ClusterID, Objects: &found.Objects, Rows: &found.Rows,
		Revision: &found.Revision, Floor: &found.Floor, Bytes: &found.Bytes,
	}}
	if found.Kind == changelog.KindEtcd {
		s.Database.Objects, s.Database.Keys = nil, &found.Objects
		found.Revision, _ = changelog.Split(found.Revision) // which its clients see
		found.Floor, _ = changelog.Split(found.Floor)
	}
	if found.Free >= 0 {
		s.Database.FreeBytes = &found.Free
	}
	return s, nil
}

func (s *status) print(w io.Writer, output string) error {
	if output != "" {
		return printAs(w, output, s)
	}
	w = &console{out: w}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprint(table, name+"\t"+printable(fmt.Sprintf(format, args...))+"\n")
	}
	switch {
	case s.Ready == nil:
	case *s.Ready:
		line("Ready", "yes")
	default:
		line("Ready", "no: %s", strings.Join(s.Problems, "; "))
	}
	if s.Server != "" {
		line("Server", "%s", s.Server)
	}
	if s.Version != "" {
		line("Version", "%s, Kubernetes %s", s.Version, s.Kubernetes)
	}
	s.Database.print(line)
	s.printServer(line)
	for i, name := range slices.Sorted(maps.Keys(s.Certificates)) {
		end := s.Certificates[name]
		title := ""
		if i == 0 {
			title = "Certificates"
		}
		line(title, "%s ends %s, %s", name, end.Format(time.DateOnly), until(end))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return s.printTables(w)
}

func (d *databaseStatus) print(line func(name, format string, args ...any)) {
	if d.Name != "" {
		line("Database", "%s", d.Name)
	}
	if d.ClusterID != "" {
		line("Cluster", "%s", d.ClusterID)
	}
	if d.Objects != nil {
		line("Objects", "%d", *d.Objects)
	}
	if d.Keys != nil {
		line("Keys", "%d", *d.Keys)
	}
	switch {
	case d.Rows != nil && d.Dead != nil:
		line("Rows", "%d, %d of them old versions%s", *d.Rows, *d.Dead, d.keptText())
	case d.Rows != nil:
		line("Rows", "%d, with history", *d.Rows)
	}
	if d.Revision != nil && d.Floor != nil {
		line("Revision", "%d; history begins at %d", *d.Revision, *d.Floor)
	}
	switch {
	case d.Bytes != nil && d.FreeBytes != nil:
		line("Size", "%s; %s are free on the disk", units.Bytes(*d.Bytes), units.Bytes(*d.FreeBytes))
	case d.Bytes != nil:
		line("Size", "%s", units.Bytes(*d.Bytes))
	}
}

// until returns the days that are left until end, as text.
func until(end time.Time) string {
	left := time.Until(end)
	days := fmt.Sprintf("%d days", int(left.Abs().Hours()/24))
	if left.Abs() < 24*time.Hour {
		days = "less than a day"
	}
	if left < 0 {
		return days + " ago"
	}
	return "in " + days
}

// inDataDir finds the data directory.
func (q *statusQuery) inDataDir(cmd *cobra.Command) {
	q.dataDir, q.inNamed = dataDirOf(cmd, q.dataDir), namedDataDir(cmd)
}

// named is the kubeconfig that the command line names, if any.
func (q *statusQuery) named() string { return cmp.Or(q.kubeconfig, q.inNamed) }

func (q *statusQuery) rules() *clientcmd.ClientConfigLoadingRules {
	return kubeconfigRules(q.named(), q.dataDir)
}
