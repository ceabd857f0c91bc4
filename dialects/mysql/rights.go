package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// granted is what plinth's user needs: the first four to serve, the rest for migrations,
// of this version and of later ones.
const granted = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, CREATE VIEW"

// checkTables refuses a user who lacks a right on the tables that plinth always needs. For
// EXPLAIN the server checks the rights of a statement and does not run it.
func (l *database) checkTables(ctx context.Context) error {
	statements := []string{
		"INSERT INTO log (id, `key`, create_id, deleted, `at`, value) VALUES (0, '', 0, 0, 0, '')",
		`INSERT INTO author (who, impersonator, verb, subresource, manager) VALUES ('', '', '', '', '')`,
		`SELECT id FROM author WHERE id = 0`,
		`DELETE FROM log WHERE id = 0`,
		`SELECT value FROM meta WHERE name = 'floor' FOR UPDATE`,
		`UPDATE meta SET value = '0' WHERE name = 'floor'`,
		`SELECT id FROM log WHERE id = 0`,
		"INSERT INTO past (id, `key`, create_id, deleted, `at`, until_id, until_at, expires, value) VALUES (0, '', 0, 0, 0, 0, 0, 0, '')",
		`SELECT id FROM past WHERE id = 0`,
		`UPDATE past SET expires = 0 WHERE id = 0`,
		`DELETE FROM past WHERE id = 0`,
		`INSERT INTO kept (prefix, lost) VALUES ('', 0)`,
		`SELECT lost FROM kept WHERE prefix = ''`,
		`UPDATE kept SET lost = 0 WHERE prefix = ''`,
		`DELETE FROM kept WHERE prefix = ''`,
	}
	if l.kind == changelog.KindEtcd {
		statements = append(statements,
			`INSERT INTO lease (id, ttl, expires) VALUES (0, 0, 0)`,
			`DELETE FROM lease WHERE id = 0`,
			`UPDATE lease SET expires = 0 WHERE id = 0`,
			`SELECT id FROM lease WHERE id = 0`)
	}
	for _, statement := range statements {
		rows, err := l.db.QueryContext(ctx, `EXPLAIN `+statement)
		if err == nil {
			err = errors.Join(rows.Close(), rows.Err())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// denied returns what to grant if err says that a right is missing, else nil.
func (l *database) denied(ctx context.Context, err error, config *mysql.Config) error {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return nil
	}
	cannot := ""
	switch e.Number {
	case 1044: // to the database
		cannot = fmt.Sprintf("use database %q", config.DBName)
	case 1142, 1143: // COMMAND command denied to user
		what, _, _ := strings.Cut(e.Message, " command denied")
		cannot = fmt.Sprintf("%s in database %q", what, config.DBName)
	case 1227, 1345, 1370: // a right for everything; EXPLAIN; a routine
		cannot = fmt.Sprintf("do what is needed in database %q (%s)", config.DBName, e.Message)
	default:
		return nil
	}
	return refused.Grant(config.User, cannot, fmt.Sprintf("GRANT %s ON `%s`.* TO %s",
		granted, strings.ReplaceAll(config.DBName, "`", "``"), l.account(ctx, config)))
}

// account returns the account that the server has let in, 'user'@'host'. If the
// server refuses the database itself, the name is that in the DSN.
func (l *database) account(ctx context.Context, config *mysql.Config) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	name, host := config.User, "%"
	var account string
	if err := l.db.QueryRowContext(ctx, `SELECT CURRENT_USER()`).Scan(&account); err == nil {
		if at := strings.LastIndexByte(account, '@'); at >= 0 {
			name, host = account[:at], account[at+1:]
		}
	}
	return quote(name) + "@" + quote(host)
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
