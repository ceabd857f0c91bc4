// Package refused has what Open of the dialects with a server share: how long the server
// may take to answer, and the errors of one that answers and refuses the connection. Waiting
// does not help after a refusal; the DSN or the rights have to be changed.
package refused

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Err is what all errors here are.
var Err = errors.New("the DSN does not fit the database server")

type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == Err }

// User says that the server does not know user, or not with this password.
func User(user string) error {
	return refusal(fmt.Sprintf("access denied for user %q; write the right user and password in the DSN, or the password in PLINTH_DB_PASSWORD", user))
}

// Grant says what user may not do, and with which statement an administrator permits it.
func Grant(user, cannot, grant string) error {
	return refusal(fmt.Sprintf("user %q may not %s; let an administrator run: %s", user, cannot, grant))
}

// Schema says why there is no schema to keep tables in.
func Schema(why, statement string) error {
	return refusal(fmt.Sprintf("%s; let an administrator run: %s", why, statement))
}

type missing string

func (m missing) Error() string        { return string(m) }
func (m missing) Is(target error) bool { return target == Err || target == changelog.ErrNoLog }

// Missing says why a database that must be there is not.
func Missing(why string) error { return missing(why) }

// Product returns an error if version, which a server says of itself, is that of a database that speaks the protocol of
// another one without what plinth needs of it; else nil.
func Product(version string) error {
	for _, product := range []struct{ name, lacks string }{
		{"TiDB", "it takes no lock for SKIP LOCKED, so that two compactions may run at once"},
		{"CockroachDB", "it has no LISTEN and NOTIFY, and no advisory locks"},
	} {
		if strings.Contains(strings.ToLower(version), strings.ToLower(product.name)) {
			return refusal(fmt.Sprintf("the database is %s, on which plinth is not safe: %s; write the DSN of a Postgres, MySQL, MariaDB or SQLite", product.name, product.lacks))
		}
	}
	return nil
}

// Database says that there is no such database.
func Database(name string) error {
	return refusal(fmt.Sprintf("database %q does not exist; create it or write another name in the DSN", name))
}

// Host returns an error if err is the answer that a host's name is unknown, else nil.
func Host(err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return refusal(fmt.Sprintf("host %q is not known; write another in the DSN", dns.Name))
	}
	return nil
}

// TLS returns an error if err says that one side does not trust the other's certificate, or that
// the server has no TLS, else nil. parameters are those of the DSN that say whom to trust.
func TLS(err error, parameters string) error {
	var unverified *tls.CertificateVerificationError
	var remote *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unverified):
		return refusal(fmt.Sprintf("the database server's certificate is not trusted: %v; write a host that it is for, and its authority with %s, in the DSN", unverified.Err, parameters))
	case errors.As(err, &remote) && remote.Op == "remote error": // an alert, of crypto/tls
		return refusal(fmt.Sprintf("the database server does not accept the TLS connection: %v; see %s in the DSN", remote.Err, parameters))
	}
	return nil
}

// NoTLS says that the server has no TLS, and the DSN asks for it.
func NoTLS(parameter string) error {
	return refusal(fmt.Sprintf("the database server takes no TLS connections; switch TLS on there, or write another %s in the DSN", parameter))
}

// NeedsTLS says that the server takes user only with TLS.
func NeedsTLS(user, parameter string) error {
	return refusal(fmt.Sprintf("the database server takes user %q only with TLS; write %s in the DSN", user, parameter))
}

// NeedsCertificate says that the server takes user only with a certificate of the user's own.
func NeedsCertificate(user, parameters string) error {
	return refusal(fmt.Sprintf("the database server takes user %q only with a client certificate of an authority that it trusts; name it with %s in the DSN", user, parameters))
}

type otherKind string

func (o otherKind) Error() string        { return string(o) }
func (o otherKind) Is(target error) bool { return target == Err || target == changelog.ErrKind }

// Kind compares what a log is used for with what it is opened for.
func Kind(found, wanted changelog.Kind) error {
	switch {
	case found == wanted:
		return nil
	case found == changelog.KindEtcd:
		return otherKind("the database holds the keys of an etcd endpoint: serve it with plinth etcd, or name another database")
	case found == changelog.KindAPI:
		return otherKind("the database holds the objects of a Kubernetes API: serve it with plinth serve, or name another database")
	}
	return otherKind(fmt.Sprintf("the database is used for %q, which this plinth does not know: use a newer one, or name another database", string(found)))
}
