package dialects

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/plinth-io/plinth/dialects/nearest"
)

// A DSN that cannot be read may be anything, also a password or the DSN of another program.
// So an error shows only a part of it that cannot be a secret: a path to a file, or a word
// before "://" that looks like a scheme.
var (
	plainPath   = regexp.MustCompile(`^[\w.~/-]+$`)
	asFile      = regexp.MustCompile(`^(\.{0,2}|~)/|\.[a-z][a-z0-9]{0,7}$`)
	plainScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]{0,15}$`)
)

var schemes = []string{"sqlite", "postgres", "postgresql", "mysql", "mariadb"}

const writeDSN = "write sqlite://path, postgres://user:password@host:5432/database or mysql://user:password@host:3306/database (mariadb:// and postgresql:// are the same)"

// noScheme says what to write instead of a DSN without "://".
func noScheme(dsn string) error {
	before, after, colon := strings.Cut(dsn, ":")
	scheme := Scheme(strings.ToLower(before) + "://")
	switch {
	case dsn == "":
		return fmt.Errorf("it is empty; %s", writeDSN)
	case strings.EqualFold(dsn, ":memory:"):
		return fmt.Errorf("%q has no scheme; did you mean sqlite://:memory:? Or %s", dsn, writeDSN)
	case isPath(dsn):
		return fmt.Errorf("%q has no scheme; did you mean sqlite://%[1]s? Or %s", dsn, writeDSN)
	case colon && (scheme == "sqlite" || strings.EqualFold(before, "file")) && isPath(after):
		return fmt.Errorf("%q has no ://; did you mean sqlite://%s? Or %s", dsn, after, writeDSN)
	case scheme != "":
		return fmt.Errorf("it begins with %q and has no ://; %s", before, writeDSN)
	}
	return fmt.Errorf("it has no scheme (it is not shown, as it may hold a password); %s", writeDSN)
}

// isPath tells whether text can only be the name of a file.
func isPath(text string) bool { return plainPath.MatchString(text) && asFile.MatchString(text) }

// unknownScheme says what to write instead of scheme.
func unknownScheme(scheme string) error {
	if !plainScheme.MatchString(scheme) {
		return fmt.Errorf("it is of no known kind; %s", writeDSN)
	}
	if meant := nearest.Of(scheme, schemes); meant != "" {
		return fmt.Errorf("it begins with %s://, which is not known; did you mean %s://? Or %s", scheme, meant, writeDSN)
	}
	return fmt.Errorf("it begins with %s://, which is not known; %s", scheme, writeDSN)
}
