package main

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/bench/torture"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/kind"
)

// logLine is one record in the text format: time, level, message, attributes.
var logLine = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO |WARN |ERROR) (\S.*)$`)

// complaint returns what plinth printed on standard error besides records of level INFO. After a
// failed start that is the one line that says why.
func complaint(out string) string {
	var rest strings.Builder
	for line := range strings.Lines(out) {
		found := logLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if found == nil || found[1] != "INFO " {
			rest.WriteString(line)
		}
	}
	return rest.String()
}

// messages returns the records of a log without their times, and fails the test if a line is
// not a record, or one that asks for attention.
func messages(t *testing.T, log string) (all []string) {
	t.Helper()
	for line := range strings.Lines(log) {
		found := logLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		switch {
		case found == nil:
			t.Errorf("not a record: %s", line)
		case busy(found[2], found[2]):
		case found[1] == "WARN " || found[1] == "ERROR":
			t.Errorf("trouble: %s", line)
		case strings.HasPrefix(found[2], "memory is limited"): // where the tests are in a container
		default:
			all = append(all, found[1]+" "+found[2])
		}
	}
	return all
}

// busy tells whether a record says that the machine was too busy for five seconds, or no longer is.
func busy(message, record string) bool {
	return strings.HasPrefix(message, "database can") && (strings.Contains(record, "no answer within") || strings.Contains(record, "again"))
}

// matchAll compares records with expressions, one for one.
func matchAll(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !regexp.MustCompile(`^`+want[i]+`$`).MatchString(got[i]) {
			t.Errorf("logged\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
			return
		}
	}
}

// useBadly sends what a server receives on a normal day: writes, watches, requests that fail, and
// clients that do not speak TLS or hang up.
func useBadly(t *testing.T, p *process) {
	t.Helper()
	w, err := client(t, p).Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer w.Stop()
	made, err := client(t, p).Create(t.Context(), configMap("used", "1"), metav1.CreateOptions{})
	must(t, err)
	must(t, client(t, p).Delete(t.Context(), made.Name, metav1.DeleteOptions{}))
	for _, path := range []string{"/api/v1/namespaces/default/configmaps/none", "/nowhere", "/readyz?exclude=storage", "/api/v1/pods?limit=maybe"} {
		request(t, p, "GET", path, "")
	}
	request(t, p, "POST", "/api/v1/namespaces/default/configmaps", "{\x1b[31m")
	address := strings.TrimPrefix(p.url, "https://")
	for _, say := range []string{"", "GET / HTTP/1.0\r\n\r\n"} {
		conn, err := net.Dial("tcp", address)
		must(t, err)
		fmt.Fprint(conn, say)
		conn.Close()
	}
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	must(t, err)
	fmt.Fprint(conn, "this is no preface of HTTP/2, and long enough to be seen as none")
	conn.Close()
}

// From start to stop on each dialect there are the few lines that say so, and nothing else.
func TestLogOfANormalDay(t *testing.T) {
	forEach(t, func(t *testing.T, dsn string) {
		first := t.TempDir() + "/data"
		for _, flags := range [][]string{nil, {"--log-format=json", "-v=4"}} {
			dir := first
			if flags != nil { // another log, by a server with the same authority
				dir = t.TempDir() + "/data"
				must(t, torture.CopyAuthority(first, dir))
			}
			p := serveFor(t, dir, dsn, flags...)
			useBadly(t, p)
			must(t, p.stop())
			log := p.logged()
			if flags != nil {
				checkJSON(t, log)
				continue
			}
			matchAll(t, withoutChance(messages(t, log)),
				`INFO  starting version=\S+ kubernetes=`+regexp.QuoteMeta(kind.Release)+` database="?(sqlite:///|postgres://|mysql://)\S+ dataDir=/\S+/data`,
				`INFO  made a new database database=\S+`,
				`INFO  made certificates names=ca,apiserver,admin(,\S+)?`,
				`INFO  ready url=https://127\.0\.0\.1:\d+ database=\S+ new=true dataDir=/\S+/data controllers=13 objects=[1-9]\d* revision=[1-9]\d* took=\S+s`,
				`INFO  stopping reason="terminated signal received"`,
				`INFO  stopped took=\S+s revision=[1-9]\d*`)
		}
	})
}

// chance are records of a normal day that are there or not, as the database and the machine are:
// servers that share a database elect one; a start that takes long tells of it; and certificates
// that are made at their first use are logged within ten seconds, if the server lives so long.
var chance = regexp.MustCompile(`runs the controllers|still starting|made certificates names=(apiserver-kubelet-client|front-proxy)`)

func withoutChance(all []string) []string { return slices.DeleteFunc(all, chance.MatchString) }

// checkJSON wants an object in each line, none of which asks for attention, and what
// upstream's libraries tell their developers among them.
func checkJSON(t *testing.T, log string) {
	t.Helper()
	libraries := false
	var last string
	for line := range strings.Lines(log) {
		var r struct {
			Time                 time.Time
			Level, Msg, Source   string
			Took                 float64
			Objects, Controllers int
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Time.IsZero() || r.Msg == "" {
			t.Errorf("%s: %v", line, err)
		}
		if r.Level != "INFO" && r.Level != "DEBUG" && !busy(r.Msg, line) {
			t.Errorf("trouble: %s", line)
		}
		if r.Msg == "ready" && (r.Took <= 0 || r.Took > 600 || r.Objects == 0 || r.Controllers != 13) {
			t.Errorf("not as ready as that: %s", line)
		}
		libraries = libraries || r.Source == "klog"
		if r.Source == "" { // upstream's workers, for whom nobody waits, may speak last
			last = r.Msg
		}
	}
	if !libraries || last != "stopped" {
		t.Errorf("klog is there: %v; the last record of ours is %q", libraries, last)
	}
}

// A password in the DSN is in no record, however much is logged.
func TestLogWithoutPassword(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(logtest.Postgres(t))
	must(t, err)
	if _, has := u.User.Password(); !has { // the server takes any
		u.User = url.UserPassword(u.User.Username(), "hunter2-s3cret")
	}
	password, _ := u.User.Password()
	p := serveFor(t, t.TempDir()+"/data", u.String(), "-v=7")
	useBadly(t, p)
	must(t, p.stop())
	log := p.logged()
	if !strings.Contains(log, "postgres://"+u.User.Username()+"@") || strings.Contains(log, ":"+password) || strings.Contains(log, "s3cret") {
		t.Error("the database is not in the log, or its password is")
	}
}

// However much is logged, no content of an object is: controllers inside read and write this
// Secret, which gets a token.
func TestLogWithoutSecrets(t *testing.T) {
	t.Parallel()
	p := serveFor(t, t.TempDir()+"/data", "sqlite://:memory:", "-v=10")
	core := kubernetes.NewForConfigOrDie(p.config(t)).CoreV1()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, err := core.ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	secrets := core.Secrets("default")
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
		Data:       map[string][]byte{"mine": []byte("s3cret-of-mine")},
	}
	made, err := secrets.Create(t.Context(), made, metav1.CreateOptions{})
	must(t, err)
	for end := time.Now().Add(patience); len(made.Data["token"]) == 0; time.Sleep(20 * time.Millisecond) {
		made, err = secrets.Get(t.Context(), "s", metav1.GetOptions{})
		must(t, err)
		if time.Now().After(end) {
			t.Fatal("the Secret gets no token")
		}
	}
	must(t, p.stop())
	log := p.logged()
	token := string(made.Data["token"])
	for _, secret := range []string{"s3cret-of-mine", base64.StdEncoding.EncodeToString([]byte("s3cret-of-mine")), token, base64.StdEncoding.EncodeToString([]byte(token))} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %s", secret)
		}
	}
	if !strings.Contains(log, "DEBUG") {
		t.Error("-v=10 shows nothing more")
	}
}

// A lost database is logged once, and so is its return, whatever clients ask meanwhile.
func TestLogOfAnOutage(t *testing.T) {
	t.Parallel()
	db := logtest.StartPostgres(t)
	p := serveFor(t, t.TempDir()+"/data", logtest.CreateDatabase(t, db), "--request-timeout=2m")
	db.Stop()
	for range 20 {
		expectAway(t, p)
	}
	must(t, db.Start())
	expectBack(t, p)
	must(t, p.stop())
	log := p.logged()
	for text, n := range map[string]int{" ERROR database cannot be used;": 1, " INFO  database can be used again after=": 1,
		`health check fails probe=readyz check=etcd`: 1, `health check passes again probe=readyz check=etcd after=`: 1} {
		if got := strings.Count(log, text); got != n {
			t.Errorf("%q is there %d times, want %d", text, got, n)
		}
	}
	// What is logged once in an outage that lasts longer on a busy machine is less than the requests. Upstream's
	// controllers have errors of their own then.
	own := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, "Z ERROR ") && !strings.Contains(line, "source=klog") {
			own++
		}
	}
	if got := strings.Count(log, "\n"); got > 60 || own > 1 {
		t.Errorf("%d records:\n%s", got, log)
	}
}
