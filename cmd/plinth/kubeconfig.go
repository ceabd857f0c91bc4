package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/server/pki"
)

const kubeconfigHelp = `Print a kubeconfig for a user, with a client certificate that plinth's authority signs.

It needs the data directory of a plinth that has run; plinth may run meanwhile. The certificate
names the user and the user's groups. RBAC decides what the user may do; without a binding, almost
nothing. A certificate cannot be revoked before it expires: use a short --expires, or delete the
user's bindings to withdraw the rights.

If standard output is a new file, only its owner may read it, because it has the user's key.`

// kubeconfigQuery is the command's flags.
type kubeconfigQuery struct {
	dataDir, user, namespace, server string
	groups                           []string
	expires                          days
	embed                            bool
}

func newKubeconfig() *cobra.Command {
	q := kubeconfigQuery{expires: days(pki.DefaultLives.Certificate)}
	cmd := &cobra.Command{
		Use:   "kubeconfig --user NAME",
		Short: "Print a kubeconfig with a new client certificate for a user",
		Long:  kubeconfigHelp,
		Args:  noArgs,
		Example: `  plinth kubeconfig --user ann --group dev --namespace shop --expires 30d > ann.kubeconfig
  plinth kubeconfig --user system:node:node-1 --group system:nodes \
    --server https://plinth.example.com:6443 > node-1.kubeconfig`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.dataDir = dataDirOf(cmd, q.dataDir)
			return q.print(cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	addInOrder(cmd,
		userFlag(&q.user, "`name` of the user"),
		Flag{Name: "group", Set: repeated(&q.groups, nil), Help: "`name` of a group of the user; repeat the flag for more"},
		namespaceFlag(&q.namespace, "default `namespace` of commands; without the flag the namespace default"),
		Flag{Name: "expires", Set: value(&q.expires), Help: "how long the certificate is valid, such as 30d or 12h; at most until the authority expires"},
		serverFlag(&q.server, "`URL` of plinth; by default that in the data directory's kubeconfig"),
		Flag{Name: "embed", Set: boolean(&q.embed, true), Help: "put the authority's certificate into the kubeconfig, instead of the name of its file"},
		dataDirFlag(&q.dataDir, ownDirHelp),
	)
	return cmd
}

// ownDirHelp is that of --data-dir of commands that read the files of a server.
const ownDirHelp = "`directory` of plinth's files, as for serve [PLINTH_DATA_DIR]"

// dataDirOf returns the directory of the flag or, if that was not given, of its variable.
func dataDirOf(cmd *cobra.Command, flag string) string {
	if dir := os.Getenv(envName(dataDirName)); dir != "" && !cmd.Flags().Changed(dataDirName) {
		return dir
	}
	return flag
}

// namedDataDir returns the kubeconfig in the directory of the flag --data-dir, if that was given: who writes it means that
// plinth, whatever KUBECONFIG says.
func namedDataDir(cmd *cobra.Command) string {
	if f := cmd.Flags().Lookup(dataDirName); f != nil && f.Changed {
		return filepath.Join(f.Value.String(), "kubeconfig")
	}
	return ""
}

const (
	kubeconfigUsage = "kubeconfig `file` to reach plinth with; by default that in --data-dir if the flag is given, else that of KUBECONFIG, else that in the data directory, else ~/.kube/config"
	dataDirUsage    = "`directory` whose kubeconfig is taken; without the flag, only if KUBECONFIG names no other [PLINTH_DATA_DIR]"
)

// kubeconfigRules say which kubeconfig the commands read that ask a plinth: the one that the command line names, else that
// of KUBECONFIG, else that in the data directory, else the user's own.
func kubeconfigRules(named, dataDir string) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = named
	if named == "" && os.Getenv("KUBECONFIG") == "" {
		path := filepath.Join(dataDir, "kubeconfig")
		if _, err := os.Stat(path); err == nil {
			rules.ExplicitPath = path
		}
	}
	return rules
}

// days is a duration that may have days, for a flag.
type days time.Duration

// Set takes a duration such as 30d, 30d12h or 12h.
func (d *days) Set(text string) error {
	number, rest, found := strings.Cut(text, "d")
	whole, err := 0, error(nil)
	if !found {
		number, rest = "0", text
	}
	if whole, err = strconv.Atoi(number); err != nil || whole < 0 || whole > 100*365 {
		return errors.New("write a duration such as 30d or 12h")
	}
	more := time.Duration(0)
	if rest != "" {
		if more, err = time.ParseDuration(rest); err != nil {
			return errors.New("write a duration such as 30d or 12h")
		}
	}
	if *d = days(time.Duration(whole)*24*time.Hour + more); *d <= 0 {
		return errors.New("write a duration above 0, such as 30d")
	}
	return nil
}

// String returns whole days as such.
func (d *days) String() string {
	if whole := time.Duration(*d); whole%(24*time.Hour) == 0 {
		return strconv.Itoa(int(whole/(24*time.Hour))) + "d"
	}
	return time.Duration(*d).String()
}

// Type says in a flag's help what to write.
func (d *days) Type() string { return "days" }

func (q *kubeconfigQuery) print(stdout, stderr io.Writer) error {
	if err := q.check(); err != nil {
		return err
	}
	dir := filepath.Join(q.dataDir, "pki")
	authority, err := pki.ReadAuthority(dir)
	if err != nil {
		return aboutPKI(err)
	}
	if err := q.findServer(); err != nil {
		return err
	}
	access := pki.Access{Server: q.server, CA: authority.PEM(), User: q.user, Namespace: q.namespace, Context: q.user + "@plinth"}
	if access.Cert, access.Key, err = authority.Client(q.user, q.groups, time.Duration(q.expires)); err != nil {
		return fmt.Errorf("sign a certificate for %s: %w", q.user, err)
	}
	if !q.embed {
		access.CA = nil
		if access.CAFile, err = filepath.Abs(filepath.Join(dir, "ca.crt")); err != nil {
			return err
		}
	}
	text, err := access.Kubeconfig()
	if err != nil {
		return err
	}
	q.warn(stderr, authority, dir)
	if err := closeToOthers(stdout); err != nil {
		return err
	}
	_, err = stdout.Write(text)
	return err
}

func (q *kubeconfigQuery) check() error {
	if strings.TrimSpace(q.user) == "" {
		return usagef("--user is missing: write the name of the user, such as --user ann")
	}
	if slices.Contains(q.groups, "") {
		return usagef("--group is empty: write the name of a group, such as --group dev")
	}
	if faults := validation.IsDNS1123Label(q.namespace); q.namespace != "" && len(faults) > 0 {
		return usagef("--namespace: %q is no name of a namespace; write one such as default", q.namespace)
	}
	if q.server == "" {
		return nil
	}
	_, err := parseServer(q.server)
	return err
}

// parseServer reads the flag --server.
func parseServer(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, usagef("--server: %q: write a URL such as https://plinth.example.com:6443", text)
	}
	return u, nil
}

// findServer takes the server from the admin's kubeconfig, if none is named.
func (q *kubeconfigQuery) findServer() error {
	if q.server != "" {
		return nil
	}
	path := filepath.Join(q.dataDir, "kubeconfig")
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return usagef("--server is missing, and %s does not name one: write --server URL, such as https://plinth.example.com:6443", path)
	}
	q.server = config.Host
	return nil
}

// warn says what the user may not expect.
func (q *kubeconfigQuery) warn(stderr io.Writer, authority *pki.Authority, dir string) {
	say := func(format string, args ...any) { fmt.Fprintf(stderr, "plinth: warning: "+format+"\n", args...) }
	if slices.Contains(q.groups, user.SystemPrivilegedGroup) {
		say("members of %s may do everything, and no role can take that from %s before the certificate ends", user.SystemPrivilegedGroup, q.user)
	}
	if end := authority.End(); time.Now().Add(time.Duration(q.expires)).After(end) {
		say("the certificate ends on %s, with plinth's authority", end.Format(time.DateOnly))
	}
	if host := hostOf(q.server); !pki.ServesName(dir, host) {
		say("the serving certificate is not valid for %s; start plinth with --tls-san %[1]s", host)
	}
}

func hostOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	if host, _, err := net.SplitHostPort(u.Host); err == nil {
		return host
	}
	return u.Hostname()
}

// closeToOthers makes a file that a shell has just made readable by its owner only.
func closeToOthers(out io.Writer) error {
	file := fileOf(out)
	if file == nil {
		return nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > 0 || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := file.Chmod(0o600); err != nil {
		return fmt.Errorf("close the output to others: %w; write it to a directory of your own", err)
	}
	return nil
}

// aboutPKI says what to do about files that cannot be used.
func aboutPKI(err error) error {
	switch {
	case errors.Is(err, pki.ErrNoAuthority):
		return usagef("%v: start plinth serve with this --data-dir first, or write the --data-dir of a plinth", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w; run this as the user of plinth, or as root", err)
	}
	return err
}
