package dbserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

var mysqlDirs = []string{"/usr/sbin", "/usr/libexec", "/usr/local/mysql/bin", "/usr/local/sbin", "/opt/homebrew/bin"}

// MariaDBInstalled tells whether StartMariaDB finds a server.
func MariaDBInstalled() bool {
	_, err := find([]string{"mariadbd", "mysqld"}, mysqlDirs...)
	return err == nil
}

// StartMariaDB starts a MariaDB server, or a MySQL one if only that is installed. durable
// says whether it syncs its writes. Its defaults are hostile on purpose: collation,
// auto-increment step and SQL mode are not what plinth would choose.
func StartMariaDB(durable bool) (*Server, error) {
	flush := "2"
	if durable {
		flush = "1"
	}
	return start(kind{
		name:   "mariadb",
		users:  []string{"mysql"},
		create: createMariaDB,
		command: func(s *Server) ([]string, error) {
			program, err := find([]string{"mariadbd", "mysqld"}, mysqlDirs...)
			return []string{program, "--no-defaults",
				"--datadir=" + filepath.Join(s.dir, "data"),
				"--bind-address=127.0.0.1",
				"--port=" + strconv.Itoa(s.port),
				"--socket=" + filepath.Join(s.dir, "socket"),
				"--pid-file=" + filepath.Join(s.dir, "server.pid"),
				"--skip-name-resolve", "--skip-log-bin",
				"--innodb-buffer-pool-size=64M",
				"--innodb-flush-log-at-trx-commit=" + flush,
				"--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci",
				"--auto-increment-increment=7", "--auto-increment-offset=3",
				"--sql-mode=NO_BACKSLASH_ESCAPES",
			}, err
		},
		dsn: func(port int, database string) string {
			if database == "" {
				database = "mysql"
			}
			return fmt.Sprintf("mysql://root@127.0.0.1:%d/%s", port, database)
		},
		ping: PingMySQL,
		stop: syscall.SIGTERM,
	})
}

func createMariaDB(s *Server) error {
	data := filepath.Join(s.dir, "data")
	program, err := find([]string{"mariadb-install-db", "mysql_install_db"}, append(mysqlDirs, "/usr/bin")...)
	if err == nil {
		return s.run(program, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal",
			"--skip-test-db", "--innodb-log-file-size=64M")
	}
	program, mysqlErr := find([]string{"mysqld"}, mysqlDirs...)
	if mysqlErr != nil {
		return err
	}
	return s.run(program, "--no-defaults", "--initialize-insecure", "--datadir="+data)
}

// PingMySQL connects once.
func PingMySQL(ctx context.Context, dsn string) error {
	db, err := OpenMySQL(dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.PingContext(ctx)
}

// OpenMySQL opens the database that a DSN as plinth writes it names. Its parameters are
// not looked at.
func OpenMySQL(dsn string) (*sql.DB, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("MySQL DSN cannot be parsed")
	}
	config := mysql.NewConfig()
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr, config.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	config.Logger = &mysql.NopLogger{}
	config.MultiStatements = true // as in the other dialects, for dumps
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
