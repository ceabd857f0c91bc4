package dialects

import (
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/plinth-io/plinth/dialects/postgres"
)

// postgresParams are those of libpq that pgx knows, and its own.
var postgresParams = []string{
	"sslmode", "sslrootcert", "sslcert", "sslkey", "sslsni", "sslnegotiation", "host", "port",
	"connect_timeout", "application_name", "search_path", "options", "target_session_attrs",
	"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity", "passfile",
}

func parsePostgres(rest string, o Options) (postgres.Options, []string, error) {
	s, err := parseServer("postgres", rest, o, postgresParams)
	if err != nil {
		return postgres.Options{}, nil, err
	}
	query := strings.ReplaceAll(s.params.Encode(), "+", "%20") // pgx, like libpq, takes a plus for itself
	clean := url.URL{Scheme: "postgres", Host: s.url.Host, Path: s.url.Path, RawQuery: query}
	if s.user != "" {
		clean.User = url.User(s.user)
	}
	config, err := pgx.ParseConfig(clean.String()) // without the password, so its error may be shown
	if err != nil {
		return postgres.Options{}, nil, redact(errors.New("postgres DSN: "+reason(err)), []string{s.password})
	}
	if s.password != "" {
		config.Password = s.password
	}
	if len(hostsOf(config)) > 1 && !s.params.Has("target_session_attrs") {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return postgres.Options{Config: config, MaxConns: s.maxConns, Log: o.Log, MustExist: o.MustExist, Wait: o.Wait, Kind: o.Kind}, []string{s.password, config.Password}, nil
}

// hostsOf returns the hosts of a configuration, each once: the driver has them twice if it is to try them with TLS
// and without.
func hostsOf(config *pgx.ConnConfig) (hosts []pgconn.FallbackConfig) {
	hosts = append(hosts, pgconn.FallbackConfig{Host: config.Host, Port: config.Port})
	for _, f := range config.Fallbacks {
		if last := hosts[len(hosts)-1]; f.Host != last.Host || f.Port != last.Port {
			hosts = append(hosts, pgconn.FallbackConfig{Host: f.Host, Port: f.Port})
		}
	}
	return hosts
}

// reason returns the last part of pgx's message, which repeats the whole DSN first.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+3:]
	}
	return strings.TrimSpace(text)
}
