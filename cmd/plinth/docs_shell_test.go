package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// docShell is the terminal in which a document is played: one bash in an empty directory, so that
// files and variables stay from block to block. It ends at the first command that fails.
type docShell struct {
	t        *testing.T
	root     string // directory of its own, with the working directory and stand-ins for /etc, /usr and /var
	port     string // that plinth serves on, for 6443 of the documents
	cmd      *exec.Cmd
	in       io.Writer
	out      *os.File // standard output and error of bash
	lines    *bufio.Reader
	replaced []string // pairs: what a document says, and what is played instead

	server  string // command of the server that runs, or did last
	serving bool
	outputs int // names the files of background commands
	watches []watching
}

// watching is a command that does not end, and the output that it should write.
type watching struct {
	at, file string
	shown    []string
}

// homePath is the directory that a document's reader works in.
func (s *docShell) home() string { return filepath.Join(s.root, "home") }

func newDocShell(t *testing.T, prelude string, replaced ...string) *docShell {
	t.Helper()
	kubectlPath, err := kubectltest.Path()
	must(t, err)
	root := t.TempDir()
	s := &docShell{t: t, root: root, port: freePort(t)}
	for _, dir := range []string{"home", "etc/systemd/system", "usr/local/bin", "var/lib"} {
		must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	docs, err := filepath.Abs(filepath.Join(repository, "docs"))
	must(t, err)
	must(t, os.Symlink(docs, filepath.Join(s.home(), "docs")))
	bin := filepath.Join(root, "bin")
	must(t, linkPlinth(bin))
	must(t, wrapKubectl(bin, kubectlPath))
	linkSQLite(t, bin)
	s.replaced = append(replaced, "0.0.0.0:6443", "127.0.0.1:"+s.port, ":6443", ":"+s.port, "plinth.example.com", "localhost")

	s.cmd = exec.Command("bash", "--norc", "--noprofile")
	s.cmd.Dir = s.home()
	s.cmd.Env = []string{asPlinth + "=1", "HOME=" + s.home(), "LANG=C.UTF-8", "PLINTH_LISTEN=127.0.0.1:" + s.port, "ROOT=" + root,
		"PATH=" + strings.Join([]string{filepath.Join(root, "usr/local/bin"), bin, os.Getenv("PATH")}, ":")}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.in, err = s.cmd.StdinPipe()
	must(t, err)
	out, w, err := os.Pipe()
	must(t, err)
	s.out, s.lines, s.cmd.Stdout, s.cmd.Stderr = out, bufio.NewReader(out), w, w
	must(t, s.cmd.Start())
	w.Close()
	t.Cleanup(s.close)
	s.mustRun("the beginning", "set -o errexit -o nounset -o pipefail\n"+prelude)
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := dbserver.FreePort()
	must(t, err)
	return strconv.Itoa(port)
}

// close ends what the document has started, servers as SIGTERM does.
func (s *docShell) close() {
	s.run(`cd "$ROOT"; kill $(jobs -p) 2>/dev/null || true; wait`)
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	_ = s.cmd.Wait()
	s.out.Close()
	logs, _ := filepath.Glob(filepath.Join(s.root, "*.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		if strings.Contains(string(text), "DATA RACE") || strings.Contains(string(text), "panic:") {
			s.t.Errorf("the server raced or panicked")
		}
		if s.t.Failed() {
			s.t.Logf("%s:\n%s", filepath.Base(log), text)
		}
	}
}

// endOfCommand is what bash writes after each command.
const endOfCommand = "--end of command--"

// errDocShell says that bash has ended, because a command failed, or does not answer.
var errDocShell = errors.New("the shell ended")

// run plays a command and returns all that it writes. Its standard input is empty.
func (s *docShell) run(text string) (string, error) {
	_ = s.out.SetReadDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(s.in, "{\n%s\n} </dev/null\necho; echo '%s'\n", text, endOfCommand); err != nil {
		return "", fmt.Errorf("%w: %w", errDocShell, err)
	}
	var out strings.Builder
	for {
		line, err := s.lines.ReadString('\n')
		if line == endOfCommand+"\n" {
			return strings.TrimSuffix(out.String(), "\n"), nil
		}
		out.WriteString(line)
		if err != nil {
			return out.String(), fmt.Errorf("%w: %w", errDocShell, err)
		}
	}
}

var (
	// aServer is a command that serves until a signal. It runs in the background, one at a time,
	// and the line that it prints is pasted into the shell, as documents say.
	aServer = regexp.MustCompile(`^(make run|plinth serve\b.*|plinth etcd( --.*)?)$`)
	// aWatch is a command that shows changes until it is interrupted. It runs in the background,
	// and at the end of the document must have shown what the document shows.
	aWatch = regexp.MustCompile(`^kubectl .* (-w|--watch)\b`)
	// aReader is a command that changes nothing. It is repeated until plinth's controllers have
	// done their work.
	aReader = regexp.MustCompile(`^(kubectl .*\b(get|auth can-i)\b|sqlite3|curl|plinth status)\b`)
	// offline is a command for which no plinth may serve the database.
	offline = regexp.MustCompile(`(^|&& )plinth (copy|restore|export)\b`)
)

// play plays one command and compares what it writes with what is shown.
func (s *docShell) play(at string, c command) {
	s.t.Helper()
	text, err := s.translate(c.text)
	if err != nil {
		s.t.Fatalf("%s: %v", at, err)
	}
	joined := strings.Join(strings.Fields(strings.ReplaceAll(text, "\\\n", " ")), " ")
	switch {
	case aServer.MatchString(joined):
		s.serve(at, strings.Replace(joined, "make run", "plinth serve", 1), c.shown)
	case aWatch.MatchString(joined):
		s.watch(at, joined, c.shown)
	case offline.MatchString(joined):
		s.stop()
		s.compare(at, c, s.mustRun(at, text))
		if s.server != "" {
			s.serve(at, s.server, nil)
		}
	default:
		out := s.mustRun(at, text)
		for end := time.Now().Add(patience); aReader.MatchString(joined) && len(c.shown) > 0 &&
			normalize(out) != normalize(strings.Join(c.shown, "\n")) && time.Now().Before(end); {
			time.Sleep(100 * time.Millisecond)
			out = s.mustRun(at, text)
		}
		s.compare(at, c, out)
	}
}

func (s *docShell) mustRun(at, text string) string {
	s.t.Helper()
	out, err := s.run(text)
	if err != nil {
		s.t.Fatalf("%s: %s\n%v; it wrote\n%s", at, text, err, out)
	}
	return out
}

func (s *docShell) compare(at string, c command, out string) {
	s.t.Helper()
	if len(c.shown) == 0 {
		return
	}
	if got, want := normalize(out), normalize(strings.Join(c.shown, "\n")); got != want {
		s.t.Errorf("%s: %s\nwrites\n%s\nbut the document shows\n%s\nThat is, without what differs from run to run,\n%s\nand\n%s",
			at, c.text, out, strings.Join(c.shown, "\n"), got, want)
	}
}

// serve starts a server in the background and returns when it serves.
func (s *docShell) serve(at, text string, shown []string) {
	s.t.Helper()
	s.stop()
	s.server = text
	file := s.output()
	s.mustRun(at, fmt.Sprintf("%s >%s 2>>%s/server.log & server=$!\nuntil grep -q ^export %[2]s; do kill -0 $server; sleep 0.02; done", text, file, s.root))
	out, err := os.ReadFile(file)
	must(s.t, err)
	s.compare(at, command{text: text, shown: shown}, string(out))
	s.mustRun(at, string(out))
	s.serving = true
}

// stop ends the server that runs. It must exit with 0.
func (s *docShell) stop() {
	s.t.Helper()
	if s.serving {
		s.serving = false
		s.mustRun("stop", "kill $server; wait $server")
	}
}

// watch starts a watch and returns when it has shown its first line. It has listed then, and shows
// later changes one by one.
func (s *docShell) watch(at, text string, shown []string) {
	s.t.Helper()
	file := s.output()
	s.mustRun(at, fmt.Sprintf("%s >%s 2>>%[3]s/server.log & watch=$!\nuntil [ -s %[2]s ]; do kill -0 $watch; sleep 0.02; done", text, file, s.root))
	s.watches = append(s.watches, watching{at, file, shown})
}

// finish waits until the watches have shown what they should.
func (s *docShell) finish() {
	s.t.Helper()
	for _, w := range s.watches {
		want, got := normalize(strings.Join(w.shown, "\n")), ""
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			out, err := os.ReadFile(w.file)
			must(s.t, err)
			if got = normalize(string(out)); strings.HasPrefix(got+"\n", want+"\n") {
				break
			}
		}
		if !strings.HasPrefix(got+"\n", want+"\n") {
			s.t.Errorf("%s: the watch shows\n%s\nbut the document\n%s", w.at, got, want)
		}
	}
}

func (s *docShell) output() string {
	s.outputs++
	return filepath.Join(s.root, fmt.Sprintf("output-%d", s.outputs))
}

var (
	systemPath = regexp.MustCompile(`(^|[^\w./$-]|-\w)/(etc|usr/local|var)/`)
	// foreign is a path outside of what a document may touch when it is played.
	foreign = regexp.MustCompile(`(?:^|[^\w.$/-]|-\w)(/(?:bin|boot|etc|home|lib|opt|root|run|sbin|srv|tmp|usr|var)\b\S*)`)
)

// translate puts the paths of the system below the root of the shell, and names, ports and
// databases where the test has them.
func (s *docShell) translate(text string) (string, error) {
	text = strings.NewReplacer(s.replaced...).Replace(text)
	text = systemPath.ReplaceAllString(text, "${1}$$ROOT/$2/")
	for _, m := range foreign.FindAllStringSubmatch(text, -1) {
		if m[1] != "/usr/sbin/nologin" && !strings.HasPrefix(m[1], s.root) {
			return "", fmt.Errorf("%s is outside of the directory that documents are played in", m[1])
		}
	}
	return text, nil
}

// volatile has the patterns of texts that differ from run to run, and what replaces them on both
// sides of a comparison, in this order.
var volatile = []struct {
	what, instead string
	is            *regexp.Regexp
}{
	{"directory", "…$1", regexp.MustCompile(`(?:/[\w.@+-]+)+(/[\w.@+-]+)`)},
	{"port", ":PORT", regexp.MustCompile(`:\d{4,5}\b`)},
	{"version of plinth", "VERSION", regexp.MustCompile(`\bv0\.\d+\.\d+\S*\b|\bdevel\b`)},
	{"uid", "UID", regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)},
	{"time", "TIME", regexp.MustCompile(`\b\d{4}-\d\d-\d\d([T ][\d:.]+Z?)?`)},
	{"cluster", "CLUSTER", regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)},
	{"rate of writes", "WRITES", regexp.MustCompile(`(?m)^Writes .*$`)},
	{"replica", "REPLICA (asked) ADDRESS", regexp.MustCompile(`(?m)^\S+ \(asked\) +\S+`)},
	{"seconds", "SECONDS", regexp.MustCompile(`\b\d+\.\d s\b`)},
	{"age", "AGE", regexp.MustCompile(`\b(\d+[smhd])+\b`)},
	{"size", "SIZE", regexp.MustCompile(`\b\d+(\.\d+)? ([KMGT]i?B|bytes)\b`)},
	{"revision or count", "NN", regexp.MustCompile(`\b\d{2,}\b`)},
	{"ruler", "--", regexp.MustCompile(`-{3,}`)},
	{"width of columns", " ", regexp.MustCompile(`[ \t]+`)},
	{"empty lines, ends of lines", "\n", regexp.MustCompile(`\s*\n\s*`)},
}

func normalize(text string) string {
	for _, v := range volatile {
		text = v.is.ReplaceAllString(text, v.instead)
	}
	return strings.TrimSpace(text)
}

// TestDocShellTranslate checks that commands that change the machine work below the root of the
// shell.
func TestDocShellTranslate(t *testing.T) {
	t.Parallel()
	s := &docShell{root: "/tmp/x", replaced: []string{":6443", ":1"}}
	for text, want := range map[string]string{
		"rm -rf /etc/plinth /var/lib/plinth":         "rm -rf $ROOT/etc/plinth $ROOT/var/lib/plinth",
		`sqlite3 a ".backup /var/b"; x=/usr/local/y`: `sqlite3 a ".backup $ROOT/var/b"; x=$ROOT/usr/local/y`,
		"curl https://localhost:6443/metrics":        "curl https://localhost:1/metrics",
		"kubectl get --raw /readyz":                  "kubectl get --raw /readyz",
		"useradd --shell /usr/sbin/nologin plinth":   "useradd --shell /usr/sbin/nologin plinth",
		"rm -rf /usr/lib/plinth":                     "",
		"cat </home/you/.ssh/id":                     "",
		"rm -rf /var":                                "",
		"tar -C/home/you -x":                         "",
		"x=/etc":                                     "",
	} {
		got, err := s.translate(text)
		if got != want || (err == nil) == (want == "") {
			t.Errorf("%s becomes %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	same := [][2]string{
		{"NAME   AGE\ndefault  0s \n", "NAME AGE\n\ndefault 1m2s"},
		{"export KUBECONFIG=/home/you/a/plinth-data/kubeconfig   # serving https://127.0.0.1:6443", "export KUBECONFIG=/tmp/plinth-data/kubeconfig # serving https://127.0.0.1:40001"},
		{"a  resource_version\n-  ----------------\nb  45", "a  resource_version\n-  ----------------\nb  103"},
		{"uid: ecf52c33-32de-4db3-99a2-329e8733f67c", "uid: 5a5a0d5c-6a3e-4a5c-8c0e-0f8fad5bd9cb"},
		{"338 KiB; 66.6 GiB are free", "9.5 MiB; 1.2 TiB are free"},
	}
	for _, pair := range same {
		if a, b := normalize(pair[0]), normalize(pair[1]); a != b {
			t.Errorf("%q and %q differ", a, b)
		}
	}
	for _, pair := range [][2]string{{"0/2", "0/5"}, {"yes", "no"}, {"a/plinth.db", "a/other.db"}, {"web 5", "web 2"}, {"a created", "a configured"}} {
		if normalize(pair[0]) == normalize(pair[1]) {
			t.Errorf("%q is taken for %q", pair[0], pair[1])
		}
	}
}
