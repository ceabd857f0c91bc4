// Package refused has the errors of a database server that answers and will not let one
// in. Waiting does not help; whoever wrote the DSN has to write another.
package refused

import (
	"errors"
	"fmt"
	"net"
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

// Access says that user may not use database.
func Access(user, database string) error {
	return refusal(fmt.Sprintf("user %q may not use database %q; grant it all rights there or write another user", user, database))
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
