package dialects

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/plinth-io/plinth/dialects/nearest"
)

// server is the parsed DSN of a database server.
type server struct {
	url      *url.URL
	params   url.Values // those left after ours were taken out
	user     string
	password string
	maxConns int
}

// parseServer reads what follows the scheme. No error shows any of the text, because it is
// not known where a badly encoded password ends.
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
	if err := checkHosts(u); err != nil {
		return nil, bad(err.Error())
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

// checkHosts refuses what may be a password without the @ after it. There may be several hosts,
// separated by commas.
func checkHosts(u *url.URL) error {
	if strings.HasPrefix(u.Host, "[") {
		return nil
	}
	for _, host := range strings.Split(u.Host, ",") {
		if _, port, _ := strings.Cut(host, ":"); strings.Trim(port, "0123456789") != "" {
			return errors.New("its host has a colon in it")
		}
	}
	return nil
}

// checkParams refuses what is not known. It names only what is spelt like a parameter that
// some driver has: anything else may be the rest of a password with an & or ? in it, of
// which a shell may have cut off the end.
func (s *server) checkParams(scheme string, known []string) error {
	known = append([]string{"maxconns", "password_file"}, known...)
	for name, values := range s.params {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s DSN: %s; known are %s", scheme, unknownParam(name, known), strings.Join(known, ", "))
		}
		if len(values) > 1 {
			return fmt.Errorf("%s DSN: parameter %s is given twice", scheme, name)
		}
	}
	return nil
}

// foreignParams are those of libpq and of the drivers for Go that people know from elsewhere.
var foreignParams = []string{
	"user", "password", "dbname", "hostaddr", "sslcrl", "sslcompression", "sslpassword", "ssl_min_protocol_version",
	"gssencmode", "channel_binding", "client_encoding", "fallback_application_name", "keepalives", "keepalives_idle",
	"load_balance_hosts", "require_auth", "pool_max_conns", "pool_min_conns", "pool_max_conn_lifetime", "poolsize", "pool_size",
	"charset", "collation", "parseTime", "loc", "multiStatements", "interpolateParams", "allowNativePasswords",
	"allowCleartextPasswords", "maxAllowedPacket", "ssl", "ssl-mode", "ssl-ca", "useSSL", "unix_socket", "serverPubKey",
}

func unknownParam(name string, known []string) string {
	if slices.Contains(foreignParams, name) {
		return fmt.Sprintf("parameter %s is not known here", name)
	}
	// Short words resemble many others, passwords among them.
	wrong := min(len(name)/5, 2)
	if meant := nearest.Within(wrong, name, known); meant != "" && wrong > 0 {
		return fmt.Sprintf("unknown parameter %q, did you mean %s?", name, meant)
	}
	if wrong > 0 && nearest.Within(wrong, name, foreignParams) != "" {
		return fmt.Sprintf("unknown parameter %q", name)
	}
	return "it has an unknown parameter (not shown, as it may be the rest of a password)"
}

func (s *server) takeMaxConns(scheme string) error {
	value := s.params.Get("maxconns")
	s.params.Del("maxconns")
	if value == "" {
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 32) // as Postgres' pool has it
	if err != nil || n < 2 {
		return fmt.Errorf("%s DSN: maxconns must be a number from 2 to %d", scheme, math.MaxInt32)
	}
	s.maxConns = int(n)
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
