package dialects

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects/mysql"
	"github.com/plinth-io/plinth/dialects/sqlite"
)

// Scheme returns the dialect that dsn is for: sqlite, postgres, mysql, or nothing.
func Scheme(dsn string) string {
	scheme, _, _ := strings.Cut(dsn, "://")
	switch scheme = strings.ToLower(scheme); scheme {
	case "postgresql":
		return "postgres"
	case "mariadb":
		return "mysql"
	case "sqlite", "postgres", "mysql":
		return scheme
	}
	return ""
}

// InMemory says whether dsn is of a database that ends with its log.
func InMemory(dsn string) bool {
	o, err := SQLiteOptions(dsn)
	return Scheme(dsn) == "sqlite" && err == nil && o.Path == ""
}

// HasPassword tells whether dsn has a password in it.
func HasPassword(dsn string) bool {
	_, rest, _ := strings.Cut(dsn, "://")
	u, err := url.Parse("server://" + rest)
	if err != nil || u.User == nil {
		return false
	}
	password, _ := u.User.Password()
	return password != "" && Scheme(dsn) != "sqlite"
}

// Describe names the database of a good DSN for people: without its password, with the
// whole path of a file, and with the host and port of a server.
func Describe(dsn string) string {
	switch Scheme(dsn) {
	case "sqlite":
		return describeSQLite(dsn)
	case "postgres":
		if config, err := PostgresConfig(dsn, Options{}); err == nil {
			return describePostgres(config)
		}
	case "mysql":
		_, rest, _ := strings.Cut(dsn, "://")
		if o, _, err := parseMySQL(rest, Options{}); err == nil {
			return describeMySQL(o)
		}
	}
	return "a database of an unknown kind"
}

// Same tells whether two DSNs name one database: the same file, by whatever links, or the same database of a
// server, as it is written. A server has several names; the id of its log tells then.
func Same(a, b string) bool {
	if Scheme(a) != Scheme(b) || Check(a, Options{}) != nil || Check(b, Options{}) != nil || InMemory(a) {
		return false
	}
	if Describe(a) == Describe(b) {
		return true
	}
	if Scheme(a) != "sqlite" {
		return false
	}
	one, _ := SQLiteOptions(a) // which Check has read
	other, _ := SQLiteOptions(b)
	file, err := os.Stat(one.Path)
	otherFile, otherErr := os.Stat(other.Path)
	return err == nil && otherErr == nil && os.SameFile(file, otherFile)
}

func describeSQLite(dsn string) string {
	o, err := SQLiteOptions(dsn)
	if err != nil || o.Path == "" {
		return "sqlite://:memory:"
	}
	if path, err := filepath.Abs(o.Path); err == nil {
		o.Path = path
	}
	return "sqlite://" + o.Path
}

func describePostgres(config *pgx.ConnConfig) string {
	var hosts, ports, both []string
	for _, h := range hostsOf(config) {
		port := strconv.Itoa(int(h.Port))
		hosts, ports, both = append(hosts, h.Host), append(ports, port), append(both, net.JoinHostPort(h.Host, port))
	}
	u, query := url.URL{Scheme: "postgres", User: url.User(config.User), Path: "/" + config.Database}, url.Values{}
	if strings.HasPrefix(config.Host, "/") { // a socket's directory
		query.Set("host", strings.Join(hosts, ","))
		query.Set("port", strings.Join(ports, ","))
	} else {
		u.Host = strings.Join(both, ",")
	}
	if path := config.RuntimeParams["search_path"]; path != "" {
		query.Set("search_path", path)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

func describeMySQL(o mysql.Options) string {
	config := o.Config
	u := url.URL{Scheme: "mysql", User: url.User(config.User), Path: "/" + config.DBName}
	if config.Net == "unix" {
		u.RawQuery = url.Values{"socket": {config.Addr}}.Encode()
	} else {
		u.Host = strings.Join(o.Hosts, ",")
	}
	return u.String()
}

// The following are for programs that talk to the database itself, beside the log. The
// configurations hold the password.

// SQLiteOptions returns the options in a DSN of a SQLite database.
func SQLiteOptions(dsn string) (sqlite.Options, error) {
	_, rest, _ := strings.Cut(dsn, "://")
	return parseSQLite(rest)
}

// PostgresConfig returns what the driver connects with.
func PostgresConfig(dsn string, o Options) (*pgx.ConnConfig, error) {
	_, rest, _ := strings.Cut(dsn, "://")
	po, _, err := parsePostgres(rest, o)
	return po.Config, err
}

// MySQLConfig returns what the driver connects with.
func MySQLConfig(dsn string, o Options) (*driver.Config, error) {
	_, rest, _ := strings.Cut(dsn, "://")
	mo, _, err := parseMySQL(rest, o)
	return mo.Config, err
}
