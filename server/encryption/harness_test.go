package encryption_test

import (
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/logging"
)

// The helpers of several tests of this package.

func TestMain(m *testing.M) {
	logging.Libraries(logging.New(os.Stderr, logging.Options{Format: logging.Text}), 0)
	controller.EncryptionConfigFileChangePollDuration = 20 * time.Millisecond
	os.Exit(m.Run())
}

// plain is what no encrypted form of a Secret has in it.
const plain = "only-for-your-eyes"

// rule is one element of resources in an EncryptionConfiguration.
type rule struct {
	resources string   // "secrets", "*.apps"
	providers []string // "identity", PROVIDER KEYNAME, or kms NAME SOCKET and perhaps TIMEOUT
}

func secretsBy(providers ...string) rule { return rule{"secrets", providers} }

// key returns the provider's key of that name.
func key(name string) string {
	k := strings.Repeat(name, 32)[:32]
	return base64.StdEncoding.EncodeToString([]byte(k))
}

func configText(rules ...rule) string {
	var b strings.Builder
	b.WriteString("kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "- resources: [%s]\n  providers:\n", quoted(r.resources))
		for _, p := range r.providers {
			kind, name, _ := strings.Cut(p, " ")
			switch kind {
			case "identity":
				b.WriteString("  - identity: {}\n")
			case "kms":
				f := append(strings.Fields(name), "20s")
				fmt.Fprintf(&b, "  - kms: {apiVersion: v2, name: %s, endpoint: \"unix://%s\", timeout: %s}\n", f[0], f[1], f[2])
			default:
				fmt.Fprintf(&b, "  - %s: {keys: [{name: %s, secret: %s}]}\n", kind, name, key(name))
			}
		}
	}
	return b.String()
}

func quoted(resources string) string {
	return `"` + strings.ReplaceAll(resources, ",", `","`) + `"`
}

// writeConfig replaces file as an operator's tool does: at once.
func writeConfig(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

func configFile(t testing.TB, rules ...rule) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	writeConfig(t, file, configText(rules...))
	return file
}

// instance is a running server.
type instance struct {
	*server.Server
	client *kubernetes.Clientset
	config *clientrest.Config
}

func start(t testing.TB, dsn string, o encryption.Options, change ...func(*server.Config)) *instance {
	t.Helper()
	c := server.Config{DSN: dsn, Encryption: o, Controllers: []string{}, Linger: 10 * time.Millisecond, DisableAdmissionPlugins: []string{"ServiceAccount"}}
	for _, f := range change {
		f(&c)
	}
	s := server.New(c)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	config := s.RESTConfig()
	config.QPS = -1
	return &instance{s, kubernetes.NewForConfigOrDie(config), config}
}

func (i *instance) stop(t testing.TB) {
	t.Helper()
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
}

func (i *instance) put(t testing.TB, name, value string) *corev1.Secret {
	t.Helper()
	s, err := i.client.CoreV1().Secrets("default").Create(t.Context(), secret(name, value), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func secret(name, value string) *corev1.Secret {
	// A Secret's data is base64 in JSON, so the annotation is what can be looked for.
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{"of": plain}},
		Data:       map[string][]byte{"value": []byte(value)},
	}
}

func (i *instance) get(t testing.TB, name string) *corev1.Secret {
	t.Helper()
	s, err := i.client.CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens the database beside plinth.
func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	var db *sql.DB
	var err error
	switch dialects.Scheme(dsn) {
	case "sqlite":
		db, err = sql.Open("sqlite3", strings.TrimPrefix(dsn, "sqlite://"))
	case "postgres":
		db, err = sql.Open("pgx", dsn)
	default:
		db, err = dbserver.OpenMySQL(dsn)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// row is a row of the log, as it is stored.
type row struct {
	key     string
	deleted bool
	value   string
}

func stored(t testing.TB, dsn string) (all []row) {
	t.Helper()
	query := "SELECT key, deleted, value FROM log ORDER BY id"
	if dialects.Scheme(dsn) == "mysql" {
		query = "SELECT `key`, deleted, value FROM log ORDER BY id"
	}
	rows, err := open(t, dsn).QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.key, &r.deleted, &r.value); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// form returns what comes before the encrypted bytes of the newest row of a key.
func form(t testing.TB, dsn, key string) string {
	t.Helper()
	found := "nothing"
	for _, r := range stored(t, dsn) {
		if r.key == key {
			found = formOf(r.value)
		}
	}
	return found
}

func formOf(value string) string {
	if !strings.HasPrefix(value, "k8s:enc:") {
		return "plain"
	}
	parts := strings.SplitN(value, ":", 6)
	return strings.Join(parts[2:5], ":")
}

const secretKeys = "/registry/core/secrets/default/"

// unwrapAll returns what is at the bottom of an error.
func unwrapAll(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// makeCars defines two resources with an object each, and makes a Deployment.
func makeCars(t testing.TB, s *instance) {
	t.Helper()
	post := func(path, body string) {
		t.Helper()
		var err error
		for range 200 { // the resource is served soon after its definition is stored
			if err = s.client.RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error(); !apierrors.IsNotFound(err) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			t.Fatal(path, err)
		}
	}
	for plural, kind := range map[string]string{"cars": "Car", "boats": "Boat"} {
		post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.example.com"},
			"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":%[1]q,"kind":%[2]q},"versions":[{"name":"v1","served":true,"storage":true,
			"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, plural, kind))
		post("/apis/example.com/v1/namespaces/default/"+plural, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":%q,"metadata":{"name":"one"}}`, kind))
	}
	post("/apis/apps/v1/namespaces/default/deployments", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"one"},
		"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
}
