package ui

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// figures are what the metrics of a server have counted since it started. The browser makes rates of two of them.
type figures struct {
	Time     int64            `json:"time"`              // in milliseconds
	Process  float64          `json:"process"`           // when it started, in seconds: another one has counted anew
	Requests map[string]int64 `json:"requests"`          // by what they do
	Refused  map[string]int64 `json:"refused"`           // by how: 4xx without 429, 429, 5xx
	Buckets  []bucket         `json:"buckets"`           // of durations, without watches
	Bytes    *int64           `json:"bytes,omitempty"`   // of the database
	Rows     *int64           `json:"rows,omitempty"`    // of its log
	Changes  *int64           `json:"changes,omitempty"` // the newest revision

	// Of backups that are made at intervals: the time of the last one, of the last failure, and its size.
	BackupMade, BackupFailed time.Time `json:"-"`
	BackupBytes              int64     `json:"-"`
}

// bucket is how many requests took at most so many seconds.
type bucket struct {
	Most  float64 `json:"most"` // 0: any
	Count int64   `json:"count"`
}

// families are the metrics that figures are made of.
var families = []string{
	"apiserver_request_total", "apiserver_request_duration_seconds", "process_start_time_seconds",
	"plinth_database_bytes", "plinth_log_rows", "plinth_revision",
	"plinth_backup_success_timestamp_seconds", "plinth_backup_failure_timestamp_seconds", "plinth_backup_bytes",
}

// serverFigures answers with the figures of now.
func (v *visit) serverFigures() error {
	f, err := v.conn.figures(v.ctx())
	if err != nil {
		return err
	}
	return v.json(f)
}

func (c *connection) figures(ctx context.Context) (*figures, error) {
	result := c.rest.Get().AbsPath("metrics").SetHeader("Accept", "text/plain").Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	text, err := result.Raw()
	if err != nil {
		return nil, err
	}
	return readFigures(text, time.Now())
}

// readFigures reads metrics. Those of a large cluster are many megabytes, of which few lines are parsed.
func readFigures(text []byte, now time.Time) (*figures, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(only(text, families)))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	f := &figures{Time: now.UnixMilli(), Requests: map[string]int64{}, Refused: map[string]int64{"4xx": 0, "429": 0, "5xx": 0}, Buckets: []bucket{}}
	for _, m := range all["apiserver_request_total"].GetMetric() {
		f.countRequest(labelOf(m, "verb"), labelOf(m, "code"), whole(m.GetCounter().GetValue()))
	}
	f.addDurations(all["apiserver_request_duration_seconds"])
	if start := gauge(all, "process_start_time_seconds"); start != nil {
		f.Process = *start
	}
	f.Bytes, f.Rows, f.Changes = wholeGauge(all, "plinth_database_bytes"), wholeGauge(all, "plinth_log_rows"), wholeGauge(all, "plinth_revision")
	f.BackupMade, f.BackupFailed = timeGauge(all, "plinth_backup_success_timestamp_seconds"), timeGauge(all, "plinth_backup_failure_timestamp_seconds")
	if n := wholeGauge(all, "plinth_backup_bytes"); n != nil {
		f.BackupBytes = *n
	}
	return f, nil
}

// only returns the lines of some metrics.
func only(text []byte, names []string) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		name := nameOf(line)
		for _, part := range histogramParts {
			name = strings.TrimSuffix(name, part)
		}
		if slices.Contains(names, name) {
			out.Write(line)
		}
	}
	return out.Bytes()
}

// histogramParts are what the names of a histogram's lines end with.
var histogramParts = []string{"_bucket", "_sum", "_count"}

// nameOf returns the name that a line begins with, or that its comment is about.
func nameOf(line []byte) string {
	if bytes.HasPrefix(line, []byte("# ")) {
		if words := bytes.Fields(line); len(words) > 2 {
			return string(words[2])
		}
		return ""
	}
	return string(line[:max(0, bytes.IndexAny(line, "{ \n"))])
}

// ways are what requests do, by the verbs of the metrics.
var ways = map[string]string{
	"GET": "get", "HEAD": "get", "LIST": "list", "WATCH": "watch", "WATCHLIST": "watch", "POST": "create",
	"PUT": "change", "PATCH": "change", "APPLY": "change", "DELETE": "delete", "DELETECOLLECTION": "delete",
}

func (f *figures) countRequest(verb, code string, n int64) {
	if way := ways[verb]; way != "" {
		f.Requests[way] += n
	} else {
		f.Requests["other"] += n
	}
	switch {
	case code == "429":
		f.Refused["429"] += n
	case strings.HasPrefix(code, "4"):
		f.Refused["4xx"] += n
	case strings.HasPrefix(code, "5"):
		f.Refused["5xx"] += n
	}
}

// longRunning are requests that take as long as their client likes.
var longRunning = []string{"WATCH", "WATCHLIST", "CONNECT", "PROXY"}

// addDurations adds up the buckets of all requests that end by themselves.
func (f *figures) addDurations(family *dto.MetricFamily) {
	counts := map[float64]int64{}
	for _, m := range family.GetMetric() {
		if slices.Contains(longRunning, labelOf(m, "verb")) {
			continue
		}
		for _, b := range m.GetHistogram().GetBucket() {
			counts[b.GetUpperBound()] += int64(b.GetCumulativeCount())
		}
	}
	for most, n := range counts {
		f.Buckets = append(f.Buckets, bucket{most, n})
	}
	slices.SortFunc(f.Buckets, func(a, b bucket) int { return cmp.Compare(a.Most, b.Most) })
	for i := range f.Buckets {
		if math.IsInf(f.Buckets[i].Most, 1) {
			f.Buckets[i].Most = 0 // JSON has no infinity
		}
	}
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// gauge returns the value of a metric without labels, which may be untyped, nil if it is not there.
func gauge(all map[string]*dto.MetricFamily, name string) *float64 {
	metrics := all[name].GetMetric()
	if len(metrics) == 0 {
		return nil
	}
	value := metrics[0].GetGauge().GetValue() + metrics[0].GetUntyped().GetValue() + metrics[0].GetCounter().GetValue()
	return &value
}

func wholeGauge(all map[string]*dto.MetricFamily, name string) *int64 {
	value := gauge(all, name)
	if value == nil {
		return nil
	}
	n := whole(*value)
	return &n
}

func timeGauge(all map[string]*dto.MetricFamily, name string) time.Time {
	if seconds := wholeGauge(all, name); seconds != nil && *seconds > 0 {
		return time.Unix(*seconds, 0)
	}
	return time.Time{}
}

func whole(x float64) int64 { return int64(math.Round(x)) }
