package dbserver

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// StartPgBouncer starts PgBouncer in transaction mode before the Postgres server of a DSN, whose password
// it does not know. It has few sessions, so that clients meet those of others.
func StartPgBouncer(server string) (*Server, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("start pgbouncer: the server's DSN cannot be parsed")
	}
	return start(kind{
		name:   "pgbouncer",
		users:  []string{"postgres"},
		create: func(s *Server) error { return configurePgBouncer(s, u) },
		command: func(s *Server) ([]string, error) {
			program, err := find([]string{"pgbouncer"}, "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin")
			if err == nil {
				err = configurePgBouncer(s, u)
			}
			return []string{program, filepath.Join(s.dir, "pgbouncer.ini")}, err
		},
		dsn: func(port int, database string) string {
			if database == "" {
				database = "postgres"
			}
			return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", u.User.Username(), port, database)
		},
		ping: PingPostgres,
		stop: syscall.SIGTERM,
	})
}

// configurePgBouncer writes the configuration, with the port that the server has then.
func configurePgBouncer(s *Server, target *url.URL) error {
	users := filepath.Join(s.dir, "users.txt")
	text := "[databases]\n" +
		"* = host=" + target.Hostname() + " port=" + target.Port() + "\n" +
		"[pgbouncer]\n" +
		"pool_mode = transaction\n" +
		"default_pool_size = 5\nreserve_pool_size = 5\nmax_client_conn = 1000\n" +
		"listen_addr = 127.0.0.1\nlisten_port = " + strconv.Itoa(s.port) + "\nunix_socket_dir =\n" +
		"pidfile = " + filepath.Join(s.dir, "server.pid") + "\n" +
		"auth_type = trust\nauth_file = " + users + "\n" +
		"auth_user = " + target.User.Username() + "\n" +
		"ignore_startup_parameters = extra_float_digits\n"
	if err := os.WriteFile(users, fmt.Appendf(nil, "%q \"\"\n", target.User.Username()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "pgbouncer.ini"), []byte(text), 0o644)
}
