package dbserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

var postgresDirs = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin"}

// PostgresInstalled tells whether StartPostgres finds a server.
func PostgresInstalled() bool {
	_, err := find([]string{"initdb"}, postgresDirs...)
	return err == nil
}

// StartPostgres starts a Postgres server. durable says whether it syncs its writes.
func StartPostgres(durable bool) (*Server, error) {
	return start(kind{
		name:   "postgres",
		users:  []string{"postgres"},
		create: createPostgres,
		command: func(s *Server) ([]string, error) {
			program, err := find([]string{"postgres"}, postgresDirs...)
			args := []string{program,
				"-D", filepath.Join(s.dir, "data"),
				"-c", "listen_addresses=127.0.0.1",
				"-c", "port=" + strconv.Itoa(s.port),
				"-c", "unix_socket_directories=" + s.dir,
				"-c", "max_connections=200",
				"-c", "shared_buffers=64MB",
				"-c", "dynamic_shared_memory_type=mmap", // in the directory, which is removed when a killed server's is
			}
			if !durable {
				args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
			}
			return args, err
		},
		dsn: func(port int, database string) string {
			if database == "" {
				database = "postgres"
			}
			return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", port, database)
		},
		ping: PingPostgres,
		stop: syscall.SIGINT, // "fast": sessions are ended
	})
}

func createPostgres(s *Server) error {
	program, err := find([]string{"initdb"}, postgresDirs...)
	if err != nil {
		return err
	}
	return s.run(program, "--pgdata", filepath.Join(s.dir, "data"), "--username=postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
}

// PingPostgres connects once.
func PingPostgres(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.Ping(ctx)
}

// queryOne returns the number that a query finds, or -1.
func queryOne(ctx context.Context, dsn, query string) (n int) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return -1
	}
	defer conn.Close(ctx)
	if conn.QueryRow(ctx, query).Scan(&n) != nil {
		return -1
	}
	return n
}

// StandBy makes a Postgres server that is stopped come back as a standby, which is read-only until somebody
// calls pg_promote().
func (s *Server) StandBy() error {
	return os.WriteFile(filepath.Join(s.dir, "data", "standby.signal"), nil, 0o600)
}
