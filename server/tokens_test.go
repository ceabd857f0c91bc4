package server

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/tokens"
)

// uncached looks at what a token depends on at each use.
var uncached = Config{Tokens: tokens.Options{CacheFor: -1}}

// onEachDialect runs f with a server on a fresh database of each dialect, and with another
// one on the same where that is possible.
func onEachDialect(t *testing.T, c Config, f func(t *testing.T, one, other *Server)) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		c := c
		c.DSN = d.Fresh(t)
		one := start(t, c)
		other := one
		if d.Servers > 1 {
			other = start(t, c)
		}
		f(t, one, other)
	})
}

func typed(t testing.TB, s *Server) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// bearing returns a client that shows a token and no certificate.
func bearing(t testing.TB, s *Server, token string) kubernetes.Interface {
	t.Helper()
	config := clientrest.AnonymousClientConfig(s.RESTConfig())
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func addAccount(t testing.TB, s *Server, name string) *corev1.ServiceAccount {
	t.Helper()
	account, err := typed(t, s).CoreV1().ServiceAccounts("default").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return account
}

func requestToken(t testing.TB, s *Server, account string, spec authenticationv1.TokenRequestSpec) string {
	t.Helper()
	made, err := typed(t, s).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Status.Token
}

// whoami is who a token makes of its bearer; nil for 401.
func whoami(t testing.TB, s *Server, token string) *authenticationv1.UserInfo {
	t.Helper()
	review, err := bearing(t, s, token).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &review.Status.UserInfo
}

func refused(t *testing.T, what string, s *Server, token string) {
	t.Helper()
	eventually(t, what, func() bool { return whoami(t, s, token) == nil })
}

// addBound makes a pod on a node, and a secret, for tokens to be bound to.
func addBound(t *testing.T, s *Server) {
	t.Helper()
	ctx, client := t.Context(), typed(t, s).CoreV1()
	meta := metav1.ObjectMeta{Name: "bound"}
	_, err := client.Nodes().Create(ctx, &corev1.Node{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = client.Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		ServiceAccountName: "ann", NodeName: "bound", Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
	if _, err = client.Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func boundTo(kind string) authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: "bound"},
	}
}

// TestTokenLife follows tokens from their making to their end. They are made at one server
// and used at another.
func TestTokenLife(t *testing.T) {
	onEachDialect(t, uncached, func(t *testing.T, one, other *Server) {
		account := addAccount(t, one, "ann")
		addBound(t, one)
		const of = "authentication.kubernetes.io/"
		tests := []struct {
			kind  string
			extra []string
			end   func(context.Context, string, metav1.DeleteOptions) error
		}{
			{"Pod", []string{of + "credential-id", of + "node-name", of + "node-uid", of + "pod-name", of + "pod-uid"}, typed(t, one).CoreV1().Pods("default").Delete},
			{"Node", []string{of + "credential-id", of + "node-name", of + "node-uid"}, typed(t, one).CoreV1().Nodes().Delete},
			{"Secret", []string{of + "credential-id"}, typed(t, one).CoreV1().Secrets("default").Delete},
			{"", []string{of + "credential-id"}, typed(t, one).CoreV1().ServiceAccounts("default").Delete},
		}
		made := map[string]string{"": requestToken(t, one, "ann", authenticationv1.TokenRequestSpec{})}
		for _, tt := range tests[:3] {
			made[tt.kind] = requestToken(t, one, "ann", boundTo(tt.kind))
		}
		for _, tt := range tests {
			who := whoami(t, other, made[tt.kind])
			if who == nil {
				t.Fatalf("a token bound to %q is refused", tt.kind)
			}
			groups := []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"}
			if who.Username != "system:serviceaccount:default:ann" || who.UID != string(account.UID) || !slices.Equal(who.Groups, groups) {
				t.Errorf("bound to %q: %+v", tt.kind, who)
			}
			if diff := cmp.Diff(tt.extra, slices.Sorted(maps.Keys(who.Extra))); diff != "" {
				t.Errorf("bound to %q: %s", tt.kind, diff)
			}
		}
		for _, tt := range tests {
			name, now := "bound", int64(0)
			if tt.kind == "" {
				name = "ann"
			}
			if err := tt.end(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				t.Fatal(err)
			}
			refused(t, "a token is refused whose "+tt.kind+" is gone", other, made[tt.kind])
			if tt.kind != "" && whoami(t, other, made[""]) == nil {
				t.Errorf("without its %s a token is refused that was not bound to it", tt.kind)
			}
		}
		addAccount(t, one, "ann")
		if again := requestToken(t, one, "ann", authenticationv1.TokenRequestSpec{}); whoami(t, other, again) == nil {
			t.Error("a token of a new account of the same name is refused")
		}
		if whoami(t, one, made[""]) != nil || whoami(t, other, made[""]) != nil {
			t.Error("a token of an account is believed that another one has the name of")
		}
	})
}

// TestTokenOfTheNext has an account made anew at one server, and its token used at another
// that may have the account before in its memory.
func TestTokenOfTheNext(t *testing.T) {
	onEachDialect(t, uncached, func(t *testing.T, one, other *Server) {
		accounts := typed(t, one).CoreV1().ServiceAccounts("default")
		for i := range 10 {
			addAccount(t, one, "ann")
			token := requestToken(t, one, "ann", authenticationv1.TokenRequestSpec{})
			if whoami(t, other, token) == nil {
				t.Errorf("the token of account %d is refused", i)
			}
			if err := accounts.Delete(t.Context(), "ann", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What a token may do is what upstream's bootstrap roles let everybody do.
func TestTokenMay(t *testing.T) {
	s := start(t, Config{})
	addAccount(t, s, "ann")
	client := bearing(t, s, requestToken(t, s, "ann", authenticationv1.TokenRequestSpec{}))
	if _, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), `User "system:serviceaccount:default:ann" cannot list resource "pods"`) {
		t.Errorf("list pods: %v", err)
	}
	if _, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "ann", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("ask for another token: %v", err)
	}
	if _, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("review a token: %v", err)
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Errorf("version: %v", err)
	}
}

// A token is good from its making, give or take a minute, to its end.
func TestTokenTimes(t *testing.T) {
	s := start(t, uncached)
	account := addAccount(t, s, "ann")
	// Upstream's hub form of the account, of which claims are made.
	hub := core.ServiceAccount{ObjectMeta: account.ObjectMeta}
	for name, tt := range map[string]struct {
		seconds int64         // to live
		ahead   time.Duration // of the clock that made it
		good    bool
	}{
		"good":                                   {600, 0, true},
		"over":                                   {-70, 0, false},
		"over by less than clocks differ":        {-20, 0, true},
		"not yet":                                {600, 70 * time.Second, false},
		"made by a clock that is a little ahead": {600, 20 * time.Second, true},
	} {
		claims, private, err := serviceaccount.Claims(hub, nil, nil, nil, tt.seconds, 0, s.tokens.Audiences())
		if err != nil {
			t.Fatal(err)
		}
		claims.NotBefore = jwt.NewNumericDate(time.Now().Add(tt.ahead))
		claims.IssuedAt = claims.NotBefore
		token, err := s.tokens.Issuer().GenerateToken(t.Context(), claims, private)
		if err != nil {
			t.Fatal(err)
		}
		if who := whoami(t, s, token); (who != nil) != tt.good {
			t.Errorf("%s: %v", name, who)
		}
	}
}

// A token that was good a moment ago is not looked at again, as upstream.
func TestTokenCache(t *testing.T) {
	s := start(t, Config{Tokens: tokens.Options{CacheFor: time.Hour}})
	addAccount(t, s, "ann")
	used := requestToken(t, s, "ann", authenticationv1.TokenRequestSpec{})
	unused := requestToken(t, s, "ann", authenticationv1.TokenRequestSpec{})
	if whoami(t, s, used) == nil {
		t.Fatal("refused")
	}
	if err := typed(t, s).CoreV1().ServiceAccounts("default").Delete(t.Context(), "ann", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if whoami(t, s, used) == nil || whoami(t, s, unused) != nil {
		t.Error("not the used token, but the other one is believed")
	}
}

// The token of a pod lives for a year, whatever it says, unless the operator does not want
// that. It is looked at by many at once.
func TestTokenExtended(t *testing.T) {
	off := false
	for name, tt := range map[string]struct {
		extend *bool
		lives  time.Duration
	}{
		"by default": {nil, 365 * 24 * time.Hour},
		"off":        {&off, serviceaccount.WarnOnlyBoundTokenExpirationSeconds * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, Config{Tokens: tokens.Options{CacheFor: -1, ExtendExpiration: tt.extend}})
			addAccount(t, s, "ann")
			addBound(t, s)
			spec, seconds := boundTo("Pod"), int64(serviceaccount.WarnOnlyBoundTokenExpirationSeconds)
			spec.ExpirationSeconds = &seconds
			made, err := typed(t, s).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "ann",
				&authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if says := time.Until(made.Status.ExpirationTimestamp.Time); says > 2*time.Hour {
				t.Errorf("it says that it lives for %v", says)
			}
			parsed, err := jwt.ParseSigned(made.Status.Token)
			if err != nil {
				t.Fatal(err)
			}
			var claims jwt.Claims
			if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil {
				t.Fatal(err)
			}
			if lives := claims.Expiry.Time().Sub(claims.IssuedAt.Time()); lives != tt.lives {
				t.Errorf("it lives for %v", lives)
			}
			var all sync.WaitGroup
			for range 8 {
				client := bearing(t, s, made.Status.Token)
				all.Go(func() {
					for range 10 {
						if _, err := client.Discovery().ServerVersion(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}
