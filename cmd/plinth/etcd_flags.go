package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/kine"
	"github.com/plinth-io/plinth/server/etcd"
)

// addFlags adds the flags, with etcd's names and defaults where etcd has them. etcdFlagGroups has
// the group of each.
func (o *etcdOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.dsn, "dsn", "", "`database` that holds all keys: sqlite://PATH, postgres://… or mysql://…; by default "+o.defaultName+" in the data directory")
	f.DurationVar(&o.databaseTimeout, "database-timeout", time.Minute, "how long to wait at the start for a database that cannot be reached, does not answer, or is locked")
	f.StringVar(&o.dataDir, "data-dir", "plinth-data", "`directory` of the database, without --dsn, of the file with the highest revision served, and of the certificate of --auto-tls")
	f.BoolVar(&o.newDatabase, "new-database", false, "serve another database than the one served before from this data directory, even a new and empty one; for one start: left in place it permits every later change of the database, too")
	f.Var(&o.cacheBytes, "cache-bytes", "`size` of the values kept in memory, such as 256MiB; keys are all in memory, other values are read from the database")
	f.Var((*quotaSize)(&o.server.QuotaBackendBytes), "quota-backend-bytes", "`size` of the database, such as 8GiB, above which only reads and deletes are taken; 0: 2 GiB, as in etcd; negative: no limit")
	f.BoolVar(&o.unsafe, "unsafe-no-fsync", false, "do not wait for the disk: faster, and a crash of the machine may lose data; for the database in the data directory, others have durability=off in their DSN")
	f.StringVar(&o.compaction.mode, "auto-compaction-mode", compactPeriodic, "`mode` of --auto-compaction-retention: periodic or revision")
	f.StringVar(&o.compaction.retention, "auto-compaction-retention", "0", "what compaction keeps: a `duration` such as 8h or a number of hours, or in mode revision a number of revisions; 0: clients compact, as kube-apiserver does")

	f.StringVar(&o.server.Name, "name", "default", "`name` of this member, as clients see it")
	f.StringSliceVar(&o.listen, "listen-client-urls", []string{"http://127.0.0.1:2379"}, "`URLs` to listen on, separated by commas: http://HOST:PORT, https://HOST:PORT, unix:///PATH, or unixs:///PATH for TLS on a socket; port 0 takes a free port")
	f.StringSliceVar(&o.listenHTTP, "listen-client-http-urls", nil, "more `URLs` to listen on, for the pages that etcd has beside its protocol")
	f.StringSliceVar(&o.listenMetrics, "listen-metrics-urls", nil, "more `URLs` to listen on, for /metrics and /health")
	f.StringSliceVar(&o.advertise, "advertise-client-urls", nil, "`URLs` on which clients reach this member, as it tells them; by default those that it listens on")
	f.BoolVar(&o.plaintext, "insecure-plaintext", false, "listen without TLS on addresses that other machines reach: who reads along, or connects, has all keys")

	o.tls.addFlags(f)

	f.IntVar(&o.server.MaxTxnOps, "max-txn-ops", 128, "most `operations` of a transaction")
	f.IntVar(&o.server.MaxRequestBytes, "max-request-bytes", 1.5*1024*1024, "most `bytes` of a request")
	f.Uint32Var(&o.transport.MaxConcurrentStreams, "max-concurrent-streams", math.MaxUint32, "most `requests` and watches of one connection at once")
	f.DurationVar(&o.transport.KeepaliveMinTime, "grpc-keepalive-min-time", 5*time.Second, "a client that pings more often than this is disconnected")
	f.DurationVar(&o.transport.KeepaliveInterval, "grpc-keepalive-interval", 2*time.Hour, "how long a connection may be silent until it is pinged; 0: for ever")
	f.DurationVar(&o.transport.KeepaliveTimeout, "grpc-keepalive-timeout", 20*time.Second, "how long to wait for the answer to a ping before the connection is closed")
	f.DurationVar(&o.server.WatchProgressInterval, "watch-progress-notify-interval", 10*time.Minute, "how often watches are told the revision, if their clients have asked for that")
	f.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 30*time.Second, "how long a stop may take; requests that still run then are cut off")

	f.VarP(&o.logging.Verbosity, "v", "v", "log more than an operator needs: from 1 on what plinth does, and what libraries log at levels up to this `number`")
	f.StringVar(&o.level, "log-level", "info", "`level` of the log: debug, info, warn or error")
	f.Var(&o.logging.Format, "log-format", "`format` of the log on standard error: text or json")
	o.addOldNames(f)
	o.addOthers(f)
}

// oldNames are spellings of etcd 3.5 and of kine, with plinth's.
var oldNames = map[string]string{
	"experimental-watch-progress-notify-interval": "watch-progress-notify-interval",
	"endpoint": "dsn",
}

func (o *etcdOptions) addOldNames(f *pflag.FlagSet) {
	for old, name := range oldNames {
		now := f.Lookup(name)
		flag := f.VarPF(now.Value, old, "", now.Usage)
		flag.DefValue, flag.NoOptDefVal, flag.Hidden = now.DefValue, now.NoOptDefVal, true
	}
}

// addOthers adds etcd's flags that are ignored, or refused if they are given.
func (o *etcdOptions) addOthers(f *pflag.FlagSet) {
	for _, other := range append(ignoredFlags(etcdIgnored, &o.ignored), ignoredFlags(etcdRefused, &o.refused)...) {
		flag := f.VarPF(other, other.name, "", "")
		flag.Hidden = true
		if other.bool {
			flag.NoOptDefVal = "true"
		}
	}
}

// etcdRefused are flags of etcd that would protect the server if plinth had them, or say what it
// serves.
const etcdRefused = `client-cert-allowed-hostname client-crl-file config-file cors host-whitelist`

// etcdRefusals say what to do without each of them.
var etcdRefusals = map[string]string{
	"client-cert-allowed-hostname": "leave it out, and let an authority of its own, in --trusted-ca-file, sign the certificates of clients",
	"client-crl-file":              "leave it out; certificates cannot be revoked, so let an authority of its own sign short-lived ones, and replace it in --trusted-ca-file if one is lost",
	"config-file":                  "leave it out, and write what is in the file as flags, which have the same names, or as variables such as PLINTH_LISTEN_CLIENT_URLS",
	"cors":                         "leave it out; there is no JSON gateway that pages in browsers could ask",
	"host-whitelist":               "leave it out; there is no JSON gateway that browsers could reach under other names. Listen on a loopback address or a socket, or use --trusted-ca-file",
}

// etcdFlagGroups is the order in which the help of etcd and docs/flags.md show its flags.
var etcdFlagGroups = []flagGroup{
	{"Database and files", []string{
		"dsn",
		"database-timeout",
		"data-dir",
		"new-database",
		"cache-bytes",
		"quota-backend-bytes",
		"unsafe-no-fsync",
		"auto-compaction-*",
	}},
	{"Network", []string{
		"name",
		"listen-client-urls",
		"listen-client-http-urls",
		"listen-metrics-urls",
		"advertise-client-urls",
		"insecure-plaintext",
	}},
	{"TLS", []string{
		"cert-file",
		"key-file",
		"trusted-ca-file",
		"client-cert-auth",
		"auto-tls",
		"self-signed-cert-validity",
		"tls-*",
		"cipher-suites",
	}},
	{"Limits and shutdown", []string{
		"max-*",
		"grpc-*",
		"watch-progress-notify-interval",
		"shutdown-timeout",
	}},
	{"Logs", []string{
		"v",
		"log-*",
	}},
}

// check finds mistakes without any I/O.
func (o *etcdOptions) check(f *pflag.FlagSet) error {
	if len(o.refused) > 0 {
		return usagef("plinth has no %s; %s", o.refused[0], etcdRefusals[strings.TrimPrefix(o.refused[0], "--")])
	}
	if strings.TrimSpace(o.dataDir) == "" {
		return usagef("--data-dir is empty; write a path, such as plinth-data")
	}
	if o.server.Name == "" {
		return usagef("--name is empty; write a name, such as default")
	}
	if o.unsafe && o.dsn != "" {
		return usagef("--unsafe-no-fsync is for the database in the data directory; leave it out, and write durability=off in the DSN of a SQLite database")
	}
	for name, n := range map[string]int{"max-txn-ops": o.server.MaxTxnOps, "max-request-bytes": o.server.MaxRequestBytes} {
		if n <= 0 || n > math.MaxInt32 {
			return usagef("--%s: %d: write a number from 1 to %d", name, n, math.MaxInt32)
		}
	}
	if o.transport.MaxConcurrentStreams == 0 {
		return usagef("--max-concurrent-streams: 0: write a number above 0")
	}
	for _, d := range []string{"grpc-keepalive-min-time", "grpc-keepalive-interval", "grpc-keepalive-timeout", "watch-progress-notify-interval", "database-timeout", "shutdown-timeout"} {
		if value, err := f.GetDuration(d); err == nil && value < 0 {
			return usagef("--%s: %v is negative; write a duration such as 30s", d, value)
		}
	}
	if o.transport.KeepaliveInterval == 0 {
		o.transport.KeepaliveInterval = -1
	}
	if err := o.compaction.parse(); err != nil {
		return err
	}
	dsn, err := kine.DSN(o.dsn)
	if err == nil && dsn != "" {
		err = dialects.Check(dsn, dialects.Options{})
	}
	if err != nil {
		return usagef("--dsn: %v", err)
	}
	o.dsn = dsn
	return o.checkURLs()
}

// checkURLs reads all URLs, and refuses to show keys in the clear to other machines. The pages have none.
func (o *etcdOptions) checkURLs() error {
	secure := false
	for flag, urls := range map[string][]string{"listen-client-urls": o.listen, "listen-client-http-urls": o.listenHTTP, "listen-metrics-urls": o.listenMetrics} {
		for _, text := range urls {
			a, err := etcd.ParseAddress(strings.TrimSpace(text))
			if err != nil {
				return usagef("--%s %v", flag, err)
			}
			if flag == "listen-client-urls" && !a.Secure() && !a.Local() && !o.plaintext {
				return usagef("--%s %s: other machines would reach it without TLS; write https:// and give --cert-file and --key-file, or --auto-tls, or give --insecure-plaintext", flag, a)
			}
			if a.Secure() && !o.tls.given() {
				return usagef("--%s %s: TLS needs --cert-file and --key-file, or --auto-tls", flag, a)
			}
			secure = secure || a.Secure()
			if flag == "listen-client-urls" && !a.Secure() && (o.tls.trustedCA != "" || o.tls.clientAuth) {
				o.log.Warn("clients need no certificate at a URL that is not https:// or unixs://, whatever --trusted-ca-file and --client-cert-auth say", "url", a)
			}
		}
	}
	for _, text := range o.advertise {
		if _, err := etcd.ParseAddress(strings.TrimSpace(text)); err != nil {
			return usagef("--advertise-client-urls %v", err)
		}
	}
	if len(o.listen) == 0 {
		return usagef("--listen-client-urls is empty; write a URL such as http://127.0.0.1:2379")
	}
	if o.tls.given() && !secure {
		o.log.Warn("no URL to listen on is https:// or unixs://, so the certificate is not used")
	}
	return o.tls.check()
}

// byteSize is a number of bytes that can be written with a unit.
type byteSize int

// String implements pflag.Value.
func (b *byteSize) String() string {
	if n := int(*b); n > 0 && n%(1<<20) == 0 {
		return strconv.Itoa(n>>20) + "MiB"
	}
	return strconv.Itoa(int(*b))
}

// Type implements pflag.Value.
func (b *byteSize) Type() string { return "size" }

// Set implements pflag.Value.
func (b *byteSize) Set(text string) error {
	n, err := parseBytes(text)
	if err != nil || n < 1 {
		return fmt.Errorf("write a number of bytes, or one with KiB, MiB or GiB, such as 256MiB")
	}
	*b = byteSize(n)
	return nil
}

// memorySize is byteSize for a bound that may be 0: none.
type memorySize int64

// String implements pflag.Value.
func (m *memorySize) String() string {
	if *m == 0 {
		return ""
	}
	b := byteSize(*m)
	return b.String()
}

// Type implements pflag.Value.
func (m *memorySize) Type() string { return "size" }

// Set implements pflag.Value.
func (m *memorySize) Set(text string) error {
	n, err := parseBytes(text)
	if err != nil || n < 0 {
		return fmt.Errorf("write a number of bytes, or one with KiB, MiB or GiB, such as 512MiB")
	}
	if n > 0 && n < 1<<20 { // nothing runs in that; 512 is meant to be MiB
		return fmt.Errorf("that is %s: write a unit, such as 512MiB", countOf(int(n), "byte"))
	}
	*m = memorySize(n)
	return nil
}

// parseBytes reads a number of bytes that may have a unit.
func parseBytes(text string) (int64, error) {
	number, shift := text, 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if before, ok := strings.CutSuffix(text, unit); ok {
			number, shift = before, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err == nil && (n > math.MaxInt>>shift || n < math.MinInt>>shift) {
		err = strconv.ErrRange
	}
	return n << shift, err
}

// quotaSize is a number of bytes that may be 0 or negative.
type quotaSize int64

// String implements pflag.Value.
func (q *quotaSize) String() string { return strconv.FormatInt(int64(*q), 10) }

// Type implements pflag.Value.
func (q *quotaSize) Type() string { return "size" }

// Set implements pflag.Value.
func (q *quotaSize) Set(text string) error {
	n, err := parseBytes(text)
	if err != nil {
		return fmt.Errorf("write a number of bytes, or one with KiB, MiB or GiB, such as 8GiB")
	}
	*q = quotaSize(n)
	return nil
}
