package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/plinth-io/plinth/dialects/internal/refused"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// SQLSTATEs.
const (
	undefinedTable = "42P01"
	insufficient   = "42501" // insufficient_privilege
)

func isCode(err error, code string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == code
}

// schema is where the log's tables are, or where they will be made.
type schema struct {
	database, user, name string
	create               bool // user may create tables in it
}

func (s schema) quotedUser() string { return pgx.Identifier{s.user}.Sanitize() }

func (s schema) grant() string {
	name := pgx.Identifier{s.name}.Sanitize()
	if s.name == "public" {
		name = s.name // as everybody writes it
	}
	return fmt.Sprintf("GRANT CREATE, USAGE ON SCHEMA %s TO %s", name, s.quotedUser())
}

// findSchema returns the first schema of the search path that exists. The server itself
// passes over those that the user may not use, which would end in tables that it does not
// find; here that is refused.
func (l *database) findSchema(ctx context.Context) (schema, error) {
	var s schema
	var path string
	var name *string
	var usage *bool
	var create *bool
	err := l.pool.QueryRow(ctx, `
		SELECT current_database(), current_user, current_setting('search_path'), found.*
		FROM (SELECT) AS always
		LEFT JOIN LATERAL (
			SELECT n.nspname::text, has_schema_privilege(n.oid, 'USAGE'), has_schema_privilege(n.oid, 'CREATE')
			FROM unnest(string_to_array(current_setting('search_path'), ',')) WITH ORDINALITY AS p (entry, i)
			JOIN pg_namespace AS n ON n.nspname = replace(btrim(p.entry, ' "'), '$user', current_user)
			ORDER BY has_schema_privilege(n.oid, 'USAGE') DESC, p.i
			LIMIT 1) AS found ON true`).Scan(&s.database, &s.user, &path, &name, &usage, &create)
	if err != nil {
		return s, err
	}
	if name == nil {
		return s, refused.Schema(fmt.Sprintf("none of the schemas in the search path (%s) exists in database %q", path, s.database),
			"CREATE SCHEMA, or give another search_path in the DSN")
	}
	s.name, s.create = *name, *create
	if !*usage {
		return s, refused.Grant(s.user, fmt.Sprintf("use schema %q of database %q", s.name, s.database), s.grant())
	}
	return s, nil
}

// checkTables refuses a user who lacks a right on the tables that plinth always needs.
func (l *database) checkTables(ctx context.Context) error {
	var cannot *string
	err := l.pool.QueryRow(ctx, `
		SELECT string_agg(privilege || ' on table ' || name, ', ')
		FROM (VALUES ('log', 'SELECT'), ('log', 'INSERT'), ('log', 'DELETE'),
		             ('meta', 'SELECT'), ('meta', 'UPDATE'), ('author', 'SELECT'), ('author', 'INSERT'),
		             ('past', 'SELECT'), ('past', 'INSERT'), ('past', 'UPDATE'), ('past', 'DELETE'),
		             ('kept', 'SELECT'), ('kept', 'INSERT'), ('kept', 'UPDATE'), ('kept', 'DELETE'),
		             ('lease', 'SELECT'), ('lease', 'INSERT'), ('lease', 'UPDATE'), ('lease', 'DELETE')) AS need (name, privilege)
		WHERE ($1 OR name <> 'lease') AND NOT has_table_privilege(name, privilege)`, l.kind == changelog.KindEtcd).Scan(&cannot)
	if err != nil || cannot == nil {
		return err
	}
	s, err := l.findSchema(ctx)
	if err != nil {
		return err
	}
	return l.refuseTables(ctx, s, *cannot)
}

// refuseTables says what to grant to a user who may not use the tables, or some of them.
func (l *database) refuseTables(ctx context.Context, s schema, cannot string) error {
	var tables *string
	err := l.pool.QueryRow(ctx, `
		SELECT string_agg(format('%I.%I', schemaname, tablename), ', ' ORDER BY tablename)
		FROM pg_tables
		WHERE schemaname = $1 AND tablename IN ('log', 'meta', 'lease', 'author', 'past', 'kept', 'schema_migrations')`, s.name).Scan(&tables)
	if err != nil || tables == nil {
		return err
	}
	return refused.Grant(s.user, fmt.Sprintf("%s in schema %q of database %q", cannot, s.name, s.database),
		fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON %s TO %s", *tables, s.quotedUser()))
}

// denied returns what to grant if err says that a right is missing, else nil.
func (l *database) denied(ctx context.Context, err error) error {
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != insufficient {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s, err := l.findSchema(ctx)
	if errors.Is(err, refused.Err) {
		return err
	}
	if err != nil {
		return nil // the answer to the first question has to do
	}
	if strings.HasPrefix(e.Message, "must be owner") {
		return refused.Schema(fmt.Sprintf("user %q may not bring the tables in schema %q of database %q up to date: %s", s.user, s.name, s.database, e.Message),
			"plinth serve once as their owner, or ALTER TABLE and ALTER VIEW … OWNER TO "+s.quotedUser())
	}
	if no := l.refuseTables(ctx, s, "use plinth's tables ("+e.Message+")"); errors.Is(no, refused.Err) {
		return no
	}
	return refused.Grant(s.user, fmt.Sprintf("create tables in schema %q of database %q (%s)", s.name, s.database, e.Message), s.grant())
}
