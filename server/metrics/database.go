package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	databaseRows  = desc("plinth_log_rows", "Rows of the log, history included; of a large table on a database server its estimate.")
	keptRows      = desc("plinth_kept_rows", "Old versions that --keep keeps; in a large table on a database server its estimate.")
	keptBytes     = desc("plinth_kept_bytes", "Bytes that these old versions take, with their indexes; an estimate (SQLite).")
	keptData      = desc("plinth_kept_data_bytes", "Bytes of the keys and values of these old versions, which --keep-size bounds; 0 while nothing does.")
	databaseBytes = desc("plinth_database_bytes", "Bytes that the database takes: the log and what is kept, with their indexes, and of SQLite the write-ahead log.")
	databaseFree  = desc("plinth_database_free_bytes", "Bytes that are free on the database's file system, where that is known (SQLite).")
	certificate   = desc("plinth_certificate_expiration_seconds", "End of a certificate in the data directory, in seconds since 1970.", "name")
)

// Database reports what the database takes. Only scrapes ask for it, and not each of them:
// asking may cost a walk through an index.
type Database struct {
	size func(context.Context) (changelog.Size, error)

	mu    sync.Mutex
	last  changelog.Size
	err   error
	until time.Time // when last and err are too old
}

// NewDatabase returns a collector of what size says.
func NewDatabase(size func(context.Context) (changelog.Size, error)) *Database {
	return &Database{size: size}
}

const (
	sizeTimeout = 5 * time.Second  // a scrape does not wait long
	sizeFresh   = 15 * time.Second // at least; longer if asking takes long
	sizeShare   = 50               // of the time is the most that asking takes, as 1/50
)

// Now returns the size, and says whether it is known. It is not asked for anew each time.
func (d *Database) Now() (changelog.Size, bool) { return d.now() }

// now returns the size, and says whether it is known.
func (d *Database) now() (changelog.Size, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	begun := time.Now()
	if begun.After(d.until) {
		ctx, cancel := context.WithTimeout(context.Background(), sizeTimeout)
		defer cancel()
		d.last, d.err = d.size(ctx)
		d.until = time.Now().Add(max(sizeFresh, sizeShare*time.Since(begun)))
	}
	return d.last, d.err == nil
}

// Describe implements prometheus.Collector.
func (d *Database) Describe(out chan<- *prometheus.Desc) {
	out <- databaseRows
	out <- keptRows
	out <- keptBytes
	out <- keptData
	out <- databaseBytes
	out <- databaseFree
}

// Collect implements prometheus.Collector. While the database cannot be asked there is nothing.
func (d *Database) Collect(out chan<- prometheus.Metric) {
	size, ok := d.now()
	if !ok {
		return
	}
	out <- prometheus.MustNewConstMetric(databaseRows, prometheus.GaugeValue, float64(size.Rows))
	out <- prometheus.MustNewConstMetric(keptRows, prometheus.GaugeValue, float64(size.Past))
	out <- prometheus.MustNewConstMetric(keptBytes, prometheus.GaugeValue, float64(size.PastBytes))
	out <- prometheus.MustNewConstMetric(keptData, prometheus.GaugeValue, float64(max(0, size.PastData)))
	out <- prometheus.MustNewConstMetric(databaseBytes, prometheus.GaugeValue, float64(size.Bytes))
	if size.Free >= 0 {
		out <- prometheus.MustNewConstMetric(databaseFree, prometheus.GaugeValue, float64(size.Free))
	}
}

// Certificates reports when certificates end, by their names.
type Certificates struct {
	Ends func() map[string]time.Time
}

// Describe implements prometheus.Collector.
func (c Certificates) Describe(out chan<- *prometheus.Desc) { out <- certificate }

// Collect implements prometheus.Collector.
func (c Certificates) Collect(out chan<- prometheus.Metric) {
	for name, end := range c.Ends() {
		out <- prometheus.MustNewConstMetric(certificate, prometheus.GaugeValue, float64(end.Unix()), name)
	}
}

// Info is a metric that is 1, for what it says in its labels: version, commit, dialect and
// database, which must not have a password in it.
func Info(labels prometheus.Labels) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "plinth_info",
		Help:        "1, with what runs here in the labels.",
		ConstLabels: labels,
	})
	info.Set(1)
	return info
}
