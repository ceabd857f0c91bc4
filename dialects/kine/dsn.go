package kine

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	driver "github.com/go-sql-driver/mysql"
)

// defaultDatabase is the name of the database where an endpoint has none.
const defaultDatabase = "kubernetes"

// DSN returns plinth's DSN for an endpoint as kine and k3s's --datastore-endpoint take it. DSNs of
// plinth stay as they are. No error shows a password. What kine takes:
//
//	sqlite://PATH?PARAMETERS of github.com/mattn/go-sqlite3
//	postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETERS of libpq
//	mysql://USER:PASSWORD@tcp(HOST:PORT)/DATABASE?PARAMETERS of github.com/go-sql-driver/mysql
//
// The database is "kubernetes" where none is named. Parameters that only tune kine are left out;
// those that mean something else than they would for plinth are refused.
func DSN(endpoint string) (string, error) {
	scheme, rest, ok := strings.Cut(endpoint, "://")
	if !ok {
		return endpoint, nil // for dialects to say what is wrong
	}
	switch strings.ToLower(scheme) {
	case "sqlite":
		return sqliteDSN(rest)
	case "litestream":
		return "", errors.New("litestream:// is kine's SQLite beside Litestream, which plinth has not; write sqlite://PATH")
	case "postgres", "postgresql":
		return postgresDSN(rest), nil
	case "mysql", "mariadb":
		return mysqlDSN(rest)
	case "http", "https":
		return "", errors.New("it is the URL of an etcd, not of a database; write a DSN such as postgres://user:password@host/database")
	case "nats", "jetstream", "embed-nats", "t4", "dqlite", "split":
		return "", fmt.Errorf("%s:// is a store of kine that plinth has not; write the DSN of a SQLite, Postgres, MySQL or MariaDB database", strings.ToLower(scheme))
	}
	return endpoint, nil
}

// defaultFile is kine's SQLite database where an endpoint names none.
const defaultFile = "./db/state.db"

// durabilities are values of plinth's parameter for those of _synchronous.
var durabilities = map[string]string{
	"0": "off", "off": "off", "1": "normal", "normal": "normal", "2": "full", "full": "full", "3": "full", "extra": "full",
}

// plinthSQLite are parameters of plinth's own DSNs.
var plinthSQLite = []string{"durability", "maxconns", "reserve"}

func sqliteDSN(rest string) (string, error) {
	path, query, _ := strings.Cut(rest, "?")
	if path == "" {
		path = defaultFile
	}
	given, err := url.ParseQuery(query)
	if err != nil {
		return "", errors.New("sqlite DSN: its parameters cannot be parsed; write ?name=value&name=value")
	}
	kept := url.Values{}
	for name, values := range given {
		value := strings.ToLower(values[len(values)-1])
		switch {
		case slices.Contains(plinthSQLite, name) || name == "mode" && value == "memory":
			kept[name] = values
		case name == "mode" && value != "rw" && value != "rwc", name == "immutable" && value != "0":
			return "", fmt.Errorf("sqlite DSN: %s=%s: plinth has to write the database; leave it out", name, value)
		case name == "_synchronous" || name == "_sync":
			durability := durabilities[value]
			if durability == "" {
				return "", fmt.Errorf("sqlite DSN: %s=%q; write durability=full, normal or off", name, value)
			}
			kept.Set("durability", durability)
		case strings.HasPrefix(name, "_"), name == "cache", name == "mode", name == "immutable", name == "vfs" && value == "unix":
			// How kine goes about it; plinth has its own way.
		default:
			return "", fmt.Errorf("sqlite DSN: unknown parameter %q; known are %s", name, strings.Join(plinthSQLite, ", "))
		}
	}
	return withQuery("sqlite://"+path, kept), nil
}

func withQuery(dsn string, query url.Values) string {
	if len(query) == 0 {
		return dsn
	}
	return dsn + "?" + query.Encode()
}

// postgresDSN adds what kine has by default. What cannot be parsed is left for package dialects
// to say.
func postgresDSN(rest string) string {
	if rest == "" {
		return "postgres://postgres:postgres@localhost/" + defaultDatabase
	}
	u, err := url.Parse("postgres://" + rest)
	if err != nil || strings.Trim(u.Path, "/") != "" {
		return "postgres://" + rest
	}
	u.Path = "/" + defaultDatabase
	return u.String()
}

// driverNet matches the part of a DSN of github.com/go-sql-driver/mysql between user and database:
// how to reach the server.
var driverNet = regexp.MustCompile(`^((tcp|tcp4|tcp6|unix)(\(.*\))?)?$`)

func mysqlDSN(rest string) (string, error) {
	// The driver's rules: the last slash begins the database, and the last @ before it ends the
	// password, which is not encoded.
	before, after, found := cutLast(rest, "/")
	_, net, user := cutLast(before, "@")
	if !user {
		net = before
	}
	if rest != "" && (!found || !driverNet.MatchString(net)) {
		return urlMySQL(rest), nil
	}
	if rest == "" {
		rest = "root@unix(/var/run/mysqld/mysqld.sock)/"
	} else if strings.Contains(after, "#") {
		return "", errors.New("mysql DSN: it has a # where none may be")
	}
	c, err := driver.ParseDSN(withoutParameters(rest))
	if err != nil {
		return "", errors.New("mysql DSN: it cannot be parsed; write mysql://user:password@tcp(host:3306)/database, or mysql://user:password@host:3306/database")
	}
	_, query, _ := strings.Cut(after, "?")
	return driverMySQL(c, query)
}

// withoutParameters cuts off what follows the database.
func withoutParameters(rest string) string {
	before, after, _ := cutLast(rest, "/")
	database, _, _ := strings.Cut(after, "?")
	return before + "/" + database
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// urlMySQL is a URL of plinth's, with kine's database if it has none.
func urlMySQL(rest string) string {
	u, err := url.Parse("mysql://" + rest)
	if err != nil || strings.Trim(u.Path, "/") != "" {
		return "mysql://" + rest
	}
	u.Path = "/" + defaultDatabase
	return u.String()
}

var (
	// sameMySQL are parameters that mean the same to plinth.
	sameMySQL = []string{"tls", "timeout", "readTimeout", "writeTimeout", "maxconns", "password_file", "tls_ca", "tls_cert", "tls_key"}
	// tuningMySQL are those that change nothing that is stored.
	tuningMySQL = []string{
		"charset", "checkConnLiveness", "clientFoundRows", "collation", "columnsWithAlias", "compress", "connectionAttributes",
		"interpolateParams", "loc", "maxAllowedPacket", "multiStatements", "parseTime", "rejectReadOnly", "timeTruncate",
	}
)

func driverMySQL(c *driver.Config, query string) (string, error) {
	u := url.URL{Scheme: "mysql", Path: "/" + c.DBName}
	if c.DBName == "" {
		u.Path += defaultDatabase
	}
	switch {
	case c.Passwd != "":
		u.User = url.UserPassword(c.User, c.Passwd)
	case c.User != "":
		u.User = url.User(c.User)
	}
	given, err := url.ParseQuery(query)
	if err != nil {
		return "", errors.New("mysql DSN: its parameters cannot be parsed")
	}
	kept := url.Values{}
	for name, values := range given {
		switch {
		case slices.Contains(sameMySQL, name):
			kept[name] = values
		case !slices.Contains(tuningMySQL, name):
			return "", fmt.Errorf("mysql DSN: it has a parameter that plinth has not; known are %s", strings.Join(sameMySQL, ", "))
		}
	}
	if c.Net == "unix" {
		kept.Set("socket", c.Addr)
	} else {
		u.Host = c.Addr
	}
	u.RawQuery = kept.Encode()
	return u.String(), nil
}
