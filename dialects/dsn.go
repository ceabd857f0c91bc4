package dialects

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// server is the parsed DSN of a database server.
type server struct {
	url      *url.URL
	params   url.Values // those left after ours were taken out
	user     string
	password string
	maxConns int
}

// parseServer reads what follows the scheme. Nothing of the text gets into an error: where
// a badly encoded password ends is anybody's guess.
func parseServer(scheme, rest string, o Options, known []string) (*server, error) {
	bad := func(what string) error {
		return fmt.Errorf("%s DSN: %s; write %[1]s://user:password@host:port/database, with special characters in user and password percent-encoded", scheme, what)
	}
	authority, after := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, after = rest[:i], rest[i:]
	}
	if strings.Contains(after, "@") || strings.Count(authority, "@") > 1 || strings.Contains(after, "#") {
		return nil, bad("it has an @ or # where none may be")
	}
	u, err := url.Parse("server://" + rest)
	if err != nil {
		return nil, bad("it cannot be parsed")
	}
	params, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, bad("its parameters cannot be parsed")
	}
	s := &server{url: u, params: params, user: u.User.Username()}
	if err := s.checkParams(scheme, known); err != nil {
		return nil, err
	}
	if err := s.takeMaxConns(scheme); err != nil {
		return nil, err
	}
	return s, s.findPassword(o)
}

// checkParams refuses what is not known. It does not name it: it may be the rest of a
// password with an & in it.
func (s *server) checkParams(scheme string, known []string) error {
	known = append([]string{"maxconns", "password_file"}, known...)
	for name, values := range s.params {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s DSN: it has an unknown parameter; known are %s", scheme, strings.Join(known, ", "))
		}
		if len(values) > 1 {
			return fmt.Errorf("%s DSN: parameter %s is given twice", scheme, name)
		}
	}
	return nil
}

func (s *server) takeMaxConns(scheme string) error {
	value := s.params.Get("maxconns")
	s.params.Del("maxconns")
	if value == "" {
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 2 {
		return fmt.Errorf("%s DSN: maxconns must be a number above 1", scheme)
	}
	s.maxConns = n
	return nil
}

// findPassword looks in the DSN, in the file it names, then in the environment.
func (s *server) findPassword(o Options) error {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	file := s.params.Get("password_file")
	s.params.Del("password_file")
	if password, ok := s.url.User.Password(); ok {
		s.password = password
		return nil
	}
	if file == "" {
		if s.password = getenv("PLINTH_DB_PASSWORD"); s.password != "" {
			return nil
		}
		file = getenv("PLINTH_DB_PASSWORD_FILE")
	}
	if file == "" {
		return nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the database's password: %w", err)
	}
	s.password = strings.TrimRight(string(b), "\r\n")
	return nil
}

// redact hides secrets in err's text, should a driver or server ever repeat one, and
// keeps it on one line.
func redact(err error, secrets []string) error {
	text := err.Error()
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if text == err.Error() {
		return err
	}
	return &redacted{text, err}
}

// redacted has another text than the error it stands for. Only errors.Is sees through
// it, so that nobody can print what is inside.
type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string        { return r.text }
func (r *redacted) Is(target error) bool { return errors.Is(r.err, target) }
