package tokens_test

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
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/tokens"
)

// addBound makes a pod on a node, and a secret, for tokens to be bound to.
func addBound(t *testing.T, s *server.Server) {
	t.Helper()
	ctx, client := t.Context(), apitest.Typed(t, s).CoreV1()
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
	aloneAndShared(t, uncached, func(t *testing.T, one, other *server.Server) {
		account := apitest.AddAccount(t, one, "ann")
		addBound(t, one)
		const of = "authentication.kubernetes.io/"
		tests := []struct {
			kind  string
			extra []string
			end   func(context.Context, string, metav1.DeleteOptions) error
		}{
			{"Pod", []string{of + "credential-id", of + "node-name", of + "node-uid", of + "pod-name", of + "pod-uid"}, apitest.Typed(t, one).CoreV1().Pods("default").Delete},
			{"Node", []string{of + "credential-id", of + "node-name", of + "node-uid"}, apitest.Typed(t, one).CoreV1().Nodes().Delete},
			{"Secret", []string{of + "credential-id"}, apitest.Typed(t, one).CoreV1().Secrets("default").Delete},
			{"", []string{of + "credential-id"}, apitest.Typed(t, one).CoreV1().ServiceAccounts("default").Delete},
		}
		made := map[string]string{"": apitest.RequestToken(t, one, "ann", authenticationv1.TokenRequestSpec{})}
		for _, tt := range tests[:3] {
			made[tt.kind] = apitest.RequestToken(t, one, "ann", boundTo(tt.kind))
		}
		for _, tt := range tests {
			who := apitest.WhoAmI(t, other, made[tt.kind])
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
			if tt.kind != "" && apitest.WhoAmI(t, other, made[""]) == nil {
				t.Errorf("without its %s a token is refused that was not bound to it", tt.kind)
			}
		}
		apitest.AddAccount(t, one, "ann")
		if again := apitest.RequestToken(t, one, "ann", authenticationv1.TokenRequestSpec{}); apitest.WhoAmI(t, other, again) == nil {
			t.Error("a token of a new account of the same name is refused")
		}
		if apitest.WhoAmI(t, one, made[""]) != nil || apitest.WhoAmI(t, other, made[""]) != nil {
			t.Error("a token of an account is believed that another one has the name of")
		}
	})
}

// TestTokenOfTheNext has an account made anew at one server, and its token used at another
// that may have the account before in its memory.
func TestTokenOfTheNext(t *testing.T) {
	aloneAndShared(t, uncached, func(t *testing.T, one, other *server.Server) {
		accounts := apitest.Typed(t, one).CoreV1().ServiceAccounts("default")
		for i := range 10 {
			apitest.AddAccount(t, one, "ann")
			token := apitest.RequestToken(t, one, "ann", authenticationv1.TokenRequestSpec{})
			if apitest.WhoAmI(t, other, token) == nil {
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
	s := start(t, server.Config{})
	apitest.AddAccount(t, s, "ann")
	client := apitest.Bearing(t, s, apitest.RequestToken(t, s, "ann", authenticationv1.TokenRequestSpec{}))
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
	key := mustECKey(t)
	c := uncached
	c.Tokens.SigningKeyFile = writeKey(t, key)
	s := start(t, c)
	issuer, err := serviceaccount.JWTTokenGenerator(tokens.DefaultIssuer, key)
	if err != nil {
		t.Fatal(err)
	}
	account := apitest.AddAccount(t, s, "ann")
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
		"not yet":                                {600, 5 * time.Minute, false},
		"made by a clock that is a little ahead": {600, 20 * time.Second, true},
	} {
		claims, private, err := serviceaccount.Claims(hub, nil, nil, nil, nil, nil, tt.seconds, 0, []string{tokens.DefaultIssuer}, nil)
		if err != nil {
			t.Fatal(err)
		}
		claims.NotBefore = jwt.NewNumericDate(time.Now().Add(tt.ahead))
		claims.IssuedAt = claims.NotBefore
		token, err := issuer.GenerateToken(t.Context(), claims, private)
		if err != nil {
			t.Fatal(err)
		}
		if who := apitest.WhoAmI(t, s, token); (who != nil) != tt.good {
			t.Errorf("%s: %v", name, who)
		}
	}
}

// A token that was good a moment ago is not looked at again, as upstream.
func TestTokenCache(t *testing.T) {
	s := start(t, server.Config{Tokens: tokens.Options{CacheFor: time.Hour}})
	apitest.AddAccount(t, s, "ann")
	used := apitest.RequestToken(t, s, "ann", authenticationv1.TokenRequestSpec{})
	unused := apitest.RequestToken(t, s, "ann", authenticationv1.TokenRequestSpec{})
	if apitest.WhoAmI(t, s, used) == nil {
		t.Fatal("refused")
	}
	if err := apitest.Typed(t, s).CoreV1().ServiceAccounts("default").Delete(t.Context(), "ann", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if apitest.WhoAmI(t, s, used) == nil || apitest.WhoAmI(t, s, unused) != nil {
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
			s := start(t, server.Config{Tokens: tokens.Options{CacheFor: -1, ExtendExpiration: tt.extend}})
			apitest.AddAccount(t, s, "ann")
			addBound(t, s)
			spec, seconds := boundTo("Pod"), int64(serviceaccount.WarnOnlyBoundTokenExpirationSeconds)
			spec.ExpirationSeconds = &seconds
			made, err := apitest.Typed(t, s).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "ann",
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
				client := apitest.Bearing(t, s, made.Status.Token)
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
