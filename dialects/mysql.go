package dialects

import (
	"cmp"
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
	hosts := addresses(s.url.Host)
	config.Net, config.Addr = "tcp", hosts[0]
	if socket := s.params.Get("socket"); socket != "" {
		config.Net, config.Addr, hosts = "unix", socket, nil
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
	return mysql.Options{Config: config, Hosts: hosts, MaxConns: s.maxConns, Log: o.Log, MustExist: o.MustExist, Wait: o.Wait, Kind: o.Kind}, []string{s.password}, nil
}

// addresses returns host and port of each of the hosts in a URL, which are separated by commas.
func addresses(hosts string) (out []string) {
	for _, host := range strings.Split(hosts, ",") {
		one := url.URL{Host: host}
		out = append(out, net.JoinHostPort(cmp.Or(one.Hostname(), "127.0.0.1"), cmp.Or(one.Port(), "3306")))
	}
	return out
}
