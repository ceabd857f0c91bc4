package dialects

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/plinth-io/plinth/dialects/mysql"
)

var mysqlParams = []string{"tls", "tls_ca", "tls_cert", "tls_key", "timeout", "readTimeout", "writeTimeout", "socket"}

func parseMySQL(rest string, o Options) (mysql.Options, []string, error) {
	s, err := parseServer("mysql", rest, o, mysqlParams)
	if err != nil {
		return mysql.Options{}, nil, err
	}
	config := driver.NewConfig()
	config.User, config.Passwd = s.user, s.password
	config.DBName = strings.TrimPrefix(s.url.Path, "/")
	if config.DBName == "" {
		return mysql.Options{}, nil, errors.New("mysql DSN names no database; write mysql://user:password@host:3306/database")
	}
	config.Net, config.Addr = "tcp", hostPort(s.url, "127.0.0.1", "3306")
	if socket := s.params.Get("socket"); socket != "" {
		config.Net, config.Addr = "unix", socket
	}
	config.Timeout = 10 * time.Second
	for name, into := range map[string]*time.Duration{
		"timeout": &config.Timeout, "readTimeout": &config.ReadTimeout, "writeTimeout": &config.WriteTimeout,
	} {
		if value := s.params.Get(name); value != "" {
			if *into, err = time.ParseDuration(value); err != nil || *into < 0 {
				return mysql.Options{}, nil, fmt.Errorf("mysql DSN: %s must be a duration such as 10s", name)
			}
		}
	}
	if err := mysqlTLS(config, s); err != nil {
		return mysql.Options{}, nil, err
	}
	return mysql.Options{Config: config, MaxConns: s.maxConns, Log: o.Log, MustExist: o.MustExist, Wait: o.Wait, Kind: o.Kind}, []string{s.password}, nil
}

// hostPort returns u's address, with host and port where it has none.
func hostPort(u *url.URL, host, port string) string {
	if h := u.Hostname(); h != "" {
		host = h
	}
	if p := u.Port(); p != "" {
		port = p
	}
	return net.JoinHostPort(host, port)
}
