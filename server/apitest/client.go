package apitest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
)

// Server is what clients need of a server.Server, which this package does not import.
type Server interface {
	// RESTConfig is the admin's.
	RESTConfig() *clientrest.Config
}

// Admin returns a client that may do everything.
func Admin(t testing.TB, s Server) *http.Client {
	t.Helper()
	return httpClient(t, s.RESTConfig())
}

// Anonymous returns a client that trusts the server and shows no certificate.
func Anonymous(t testing.TB, s Server) *http.Client {
	t.Helper()
	return httpClient(t, clientrest.AnonymousClientConfig(s.RESTConfig()))
}

func httpClient(t testing.TB, config *clientrest.Config) *http.Client {
	t.Helper()
	client, err := clientrest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Do makes a request, with a body in JSON unless it is empty, and returns the answer.
func Do(t testing.TB, client *http.Client, method, url, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return Send(t, client, r)
}

// firstFrame is how long net/http waits for the first frame of a new connection of HTTP/2. On a machine
// that stands still it closes the connection, and the client does not know that nothing was read.
const firstFrame = 2 * time.Second

// Send makes a request and returns the answer.
func Send(t testing.TB, client *http.Client, r *http.Request) (int, http.Header, string) {
	t.Helper()
	begun := time.Now()
	resp, err := client.Do(r)
	if errors.Is(err, io.ErrUnexpectedEOF) && r.Method == http.MethodGet && time.Since(begun) >= firstFrame {
		resp, err = client.Do(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// Typed returns the admin's clients of the built-in groups.
func Typed(t testing.TB, s Server) kubernetes.Interface {
	t.Helper()
	return clientset(t, s.RESTConfig())
}

// Bearing returns clients that show a token and no certificate.
func Bearing(t testing.TB, s Server, token string) kubernetes.Interface {
	t.Helper()
	config := clientrest.AnonymousClientConfig(s.RESTConfig())
	config.BearerToken = token
	return clientset(t, config)
}

func clientset(t testing.TB, config *clientrest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// AddAccount creates a ServiceAccount in the namespace default.
func AddAccount(t testing.TB, s Server, name string) *corev1.ServiceAccount {
	t.Helper()
	account, err := Typed(t, s).CoreV1().ServiceAccounts("default").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return account
}

// RequestToken asks for a token of a ServiceAccount in the namespace default.
func RequestToken(t testing.TB, s Server, account string, spec authenticationv1.TokenRequestSpec) string {
	t.Helper()
	made, err := Typed(t, s).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Status.Token
}

// WhoAmI returns the user that a token stands for, nil if the answer is 401.
func WhoAmI(t testing.TB, s Server, token string) *authenticationv1.UserInfo {
	t.Helper()
	review, err := Bearing(t, s, token).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &review.Status.UserInfo
}

// Eventually fails the test when ok does not become true. The time is for a machine that does much
// else; how fast things are is a benchmark's business. It pauses for longer than asking took, so that most of the
// processors is left to what is waited for.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for begun, asked := time.Now(), time.Now(); !ok(); asked = time.Now() {
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("timed out: %s", what)
		}
		time.Sleep(min(max(5*time.Millisecond, 3*time.Since(asked)), 250*time.Millisecond))
	}
}
