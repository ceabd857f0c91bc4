package logtest

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// tlsRow is a DSN for a server with TLS, and what comes of it: a connection, or an error that
// says what to write instead.
type tlsRow struct {
	host, user string
	params     url.Values
	want       string // in the error; empty: the log opens
}

func TestPostgresTLS(t *testing.T) {
	t.Parallel()
	s := StartPostgres(t)
	plain := CreateDatabase(t, s)
	files, err := s.UseTLS()
	if err != nil {
		t.Fatal(err)
	}
	execPostgres(t, s.DSN(""), `CREATE ROLE tls_user LOGIN SUPERUSER; CREATE ROLE cert_user LOGIN SUPERUSER`)
	full := func(more ...string) url.Values {
		return values(append([]string{"sslmode", "verify-full", "sslrootcert", files.CA}, more...)...)
	}
	playTLS(t, plain, []tlsRow{
		{params: full()},
		{params: values("sslmode", "verify-ca", "sslrootcert", files.CA), host: "localhost"},
		{params: values("sslmode", "require")},
		{params: values("sslmode", "disable")},
		{user: "tls_user", params: full()},
		{user: "tls_user", params: values("sslmode", "disable"), want: `takes user "tls_user" only with TLS; write sslmode=verify-full in the DSN`},
		{params: full(), host: "localhost", want: "wanted to match localhost; write a host that it is for, and its authority with sslrootcert"},
		{params: values("sslmode", "verify-full", "sslrootcert", files.OtherCA), want: "certificate signed by unknown authority"},
		{params: values("sslmode", "verify-full"), want: "certificate signed by unknown authority"},
		{params: values("sslmode", "verify-full", "sslrootcert", "/no/file"), want: "/no/file"},
		{params: values("sslmode", "verify-full", "sslrootcert", files.ClientKey), want: "unable to add CA to cert pool"},
		{user: "cert_user", params: full("sslcert", files.ClientCertificate, "sslkey", files.ClientKey)},
		{user: "cert_user", params: full(), want: `takes user "cert_user" only with a client certificate of an authority that it trusts; name it with sslcert and sslkey`},
		{user: "cert_user", params: full("sslcert", files.StrangerCertificate, "sslkey", files.StrangerKey), want: "only with a client certificate"},
	})
	without := StartPostgres(t)
	playTLS(t, CreateDatabase(t, without), []tlsRow{{params: full(), want: "takes no TLS connections; switch TLS on there, or write another sslmode"}})
}

func TestMySQLTLS(t *testing.T) {
	t.Parallel()
	s := StartMariaDB(t)
	plain := CreateDatabase(t, s)
	files, err := s.UseTLS()
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`CREATE USER tls_user@'%' REQUIRE SSL`, `GRANT ALL ON *.* TO tls_user@'%'`,
		`CREATE USER cert_user@'%' REQUIRE X509`, `GRANT ALL ON *.* TO cert_user@'%'`,
	} {
		execMySQL(t, s.DSN(""), statement)
	}
	playTLS(t, plain, []tlsRow{
		{params: values("tls_ca", files.CA)},
		{params: values("tls", "true", "tls_ca", files.CA)},
		{params: values("tls", "skip-verify")},
		{params: values("tls", "preferred")},
		{params: values()},
		{user: "tls_user", params: values("tls_ca", files.CA)},
		{user: "tls_user", params: values(), want: `access denied for user "tls_user"`},
		{host: "localhost", params: values("tls_ca", files.CA), want: "wanted to match localhost; write a host that it is for, and its authority with tls_ca"},
		{params: values("tls_ca", files.OtherCA), want: "certificate signed by unknown authority"},
		{params: values("tls", "true"), want: "certificate signed by unknown authority"},
		{params: values("tls_ca", "/no/file"), want: "/no/file"},
		{params: values("tls_ca", files.ClientKey), want: "no certificate in PEM form"},
		{params: values("tls", "false", "tls_ca", files.CA), want: "tls=false does not go with tls_ca"},
		{params: values("tls_cert", files.ClientCertificate), want: "tls_cert and tls_key go together"},
		{user: "cert_user", params: values("tls_ca", files.CA, "tls_cert", files.ClientCertificate, "tls_key", files.ClientKey)},
		{user: "cert_user", params: values("tls_ca", files.CA), want: `access denied for user "cert_user"`},
	})
}

func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

func playTLS(t *testing.T, dsn string, rows []tlsRow) {
	for _, row := range rows {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.RawQuery = row.params.Encode()
		if row.user != "" {
			u.User = url.User(row.user)
		}
		to := u.String()
		if row.host != "" {
			to = dbserver.WithHost(to, row.host)
		}
		l, err := dialects.Open(t.Context(), to, dialects.Options{Wait: 2 * time.Minute, Getenv: os.Getenv})
		switch {
		case err == nil:
			l.Close()
			if row.want != "" {
				t.Errorf("%s %v: it opens", row.user, row.params)
			}
		case row.want == "" || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s %s %v: %v", row.user, row.host, row.params, err)
		case errors.Is(err, changelog.ErrUnavailable) && !errors.Is(err, dialects.ErrDSN):
			t.Errorf("%s %v is waited for: %v", row.user, row.params, err)
		}
	}
}
