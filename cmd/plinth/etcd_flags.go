package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// flags returns the flags of etcd, in the order of its help, with etcd's names and defaults where etcd has them.
func (o *etcdOptions) flags() []Flag {
	verbosity := verbosityFlag(&o.logging.Verbosity, "libraries log")
	verbosity.DropIn.lacks = true
	return slices.Concat(
		grouped("Database and files", o.databaseFlags()),
		grouped("Network", o.networkFlags()),
		grouped("TLS", o.tls.flags()),
		grouped("Limits and shutdown", o.limitFlags()),
		grouped("Logs", []Flag{
			verbosity,
			{Name: "log-level", Set: text(&o.level, "info"), Complete: values("debug", "info", "warn", "error"),
				Help: "`level` of the log: debug, info, warn or error"},
			logFormatFlag(&o.logging.Format),
		}),
	)
}

func (o *etcdOptions) databaseFlags() []Flag {
	dsn := dsnFlag(&o.dsn, "`database` that holds all keys: sqlite://PATH, postgres://… or mysql://…; by default "+o.defaultName+" in the data directory")
	dsn.Old, dsn.DropIn.lacks = "endpoint", true // as kine has it
	dir := dataDirFlag(&o.dataDir, "`directory` of the database, without --dsn, of the file with the highest revision served, and of the certificate of --auto-tls")
	dir.Check = notBlank(&o.dataDir, "a path, such as plinth-data")
	none := ""
	dir.DropIn = dropIn{byDefault: &none, help: "`directory` of the databases; by default NAME.etcd"}
	timeout := databaseTimeoutFlag(&o.databaseTimeout)
	timeout.Check = notNegative(&o.databaseTimeout)
	return []Flag{
		dsn,
		timeout,
		dir,
		newDatabaseFlag(&o.newDatabase),
		{Name: "cache-bytes", Set: value(&o.cacheBytes), DropIn: dropIn{lacks: true},
			Help: "`size` of the values kept in memory, such as 256MiB; keys are all in memory, other values are read from the database"},
		{Name: "quota-backend-bytes", Set: value((*quotaSize)(&o.server.QuotaBackendBytes)),
			Help: "`size` of the database, such as 8GiB, above which only reads and deletes are taken; 0: 2 GiB, as in etcd; negative: no limit"},
		{Name: "unsafe-no-fsync", Set: boolean(&o.unsafe, false), Check: o.checkUnsafe,
			Help: "do not wait for the disk: faster, and a crash of the machine may lose data; for the database in the data directory, others have durability=off in their DSN"},
		{Name: "auto-compaction-mode", Set: text(&o.compaction.mode, compactPeriodic), Complete: values(compactPeriodic, compactRevision),
			Help: "`mode` of --auto-compaction-retention: periodic or revision"},
		{Name: "auto-compaction-retention", Set: text(&o.compaction.retention, "0"),
			Help: "what compaction keeps: a `duration` such as 8h or a number of hours, or in mode revision a number of revisions; 0: clients compact, as kube-apiserver does"},
	}
}

func (o *etcdOptions) checkUnsafe() string {
	if o.unsafe && o.dsn != "" {
		return " is for the database in the data directory; leave it out, and write durability=off in the DSN of a SQLite database"
	}
	return ""
}

func (o *etcdOptions) networkFlags() []Flag {
	theirs := "http://localhost:2379"
	return []Flag{
		{Name: "name", Set: text(&o.server.Name, "default"), Check: notBlank(&o.server.Name, "a name, such as default"),
			Help: "`name` of this member, as clients see it"},
		{Name: "listen-client-urls", Set: list(&o.listen, []string{"http://127.0.0.1:2379"}), Complete: values("http://", "https://", "unix://", "unixs://"), DropIn: dropIn{byDefault: &theirs},
			Help: "`URLs` to listen on, separated by commas: http://HOST:PORT, https://HOST:PORT, unix:///PATH, or unixs:///PATH for TLS on a socket; port 0 takes a free port"},
		{Name: "listen-client-http-urls", Set: list(&o.listenHTTP, nil),
			Help: "more `URLs` to listen on, for the pages that etcd has beside its protocol"},
		{Name: "listen-metrics-urls", Set: list(&o.listenMetrics, nil),
			Help: "more `URLs` to listen on, for /metrics and /health"},
		{Name: "advertise-client-urls", Set: list(&o.advertise, nil),
			Help: "`URLs` on which clients reach this member, as it tells them; by default those that it listens on"},
		{Name: "insecure-plaintext", Set: boolean(&o.plaintext, false), DropIn: dropIn{lacks: true},
			Help: "listen without TLS on addresses that other machines reach: who reads along, or connects, has all keys"},
	}
}

func (o *etcdOptions) limitFlags() []Flag {
	stop := shutdownTimeoutFlag(&o.shutdownTimeout, "how long a stop may take; requests that still run then are cut off")
	stop.Check = notNegative(&o.shutdownTimeout)
	s, t := &o.server, &o.transport
	return []Flag{
		{Name: "max-txn-ops", Set: number(&s.MaxTxnOps, 128), Check: positive(&s.MaxTxnOps),
			Help: "most `operations` of a transaction"},
		{Name: "max-request-bytes", Set: number(&s.MaxRequestBytes, 1.5*1024*1024), Check: positive(&s.MaxRequestBytes),
			Help: "most `bytes` of a request"},
		{Name: "max-concurrent-streams", Set: unsigned32(&t.MaxConcurrentStreams, math.MaxUint32), Check: o.checkStreams,
			Help: "most `requests` and watches of one connection at once"},
		{Name: "grpc-keepalive-min-time", Set: period(&t.KeepaliveMinTime, 5*time.Second), Check: notNegative(&t.KeepaliveMinTime),
			Help: "a client that pings more often than this is disconnected"},
		{Name: "grpc-keepalive-interval", Set: period(&t.KeepaliveInterval, 2*time.Hour), Check: notNegative(&t.KeepaliveInterval),
			Help: "how long a connection may be silent until it is pinged; 0: for ever"},
		{Name: "grpc-keepalive-timeout", Set: period(&t.KeepaliveTimeout, 20*time.Second), Check: notNegative(&t.KeepaliveTimeout),
			Help: "how long to wait for the answer to a ping before the connection is closed"},
		{Name: "watch-progress-notify-interval", Old: "experimental-watch-progress-notify-interval", Set: period(&s.WatchProgressInterval, 10*time.Minute), Check: notNegative(&s.WatchProgressInterval),
			Help: "how often watches are told the revision, if their clients have asked for that"},
		stop,
	}
}

// positive is a Flag's Check.
func positive(n *int) func() string {
	return func() string {
		if *n <= 0 || *n > math.MaxInt32 {
			return fmt.Sprintf(": %d: write a number from 1 to %d", *n, math.MaxInt32)
		}
		return ""
	}
}

func (o *etcdOptions) checkStreams() string {
	if o.transport.MaxConcurrentStreams == 0 {
		return ": 0: write a number above 0"
	}
	return ""
}
