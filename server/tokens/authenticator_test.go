package tokens_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/tokens"
)

const (
	issuerA = "https://a.example.com"
	issuerB = "https://b.example.com"
)

// TestTokenReview has a row for each kind of token and what a review says about it.
func TestTokenReview(t *testing.T) {
	static := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(static, []byte("s3cret,eve,7,\"dev,ops\"\nroot,boss,8,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, server.Config{Tokens: tokens.Options{TokenFile: static, Issuers: []string{issuerA, issuerB}, Audiences: []string{"api", "other"}}})
	apitest.AddAccount(t, s, "ann")
	mine := apitest.RequestToken(t, s, "ann", authenticationv1.TokenRequestSpec{})
	foreign := apitest.RequestToken(t, s, "ann", authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}})
	both := apitest.RequestToken(t, s, "ann", authenticationv1.TokenRequestSpec{Audiences: []string{"vault", "api"}})
	const ann, invalid = "system:serviceaccount:default:ann", "invalid bearer token"
	wrong := func(of, target string) string {
		return `[invalid bearer token, token audiences [` + of + `] is invalid for the target audiences [` + target + `]]`
	}
	tests := []struct {
		name, token string
		audiences   []string
		user        string
		got         []string // audiences
		err         string
	}{
		{"for the API", mine, nil, ann, []string{"api", "other"}, ""},
		{"for one of the API's names", mine, []string{"other"}, ann, []string{"other"}, ""},
		{"for somebody else", foreign, nil, "", nil, wrong(`"vault"`, `"api" "other"`)},
		{"somebody else asks", foreign, []string{"vault"}, ann, []string{"vault"}, ""},
		{"somebody else asks of the API's", mine, []string{"vault"}, "", nil, wrong(`"api" "other"`, `"vault"`)},
		{"for both", both, nil, ann, []string{"api"}, ""},
		{"static", "s3cret", nil, "eve", []string{"api", "other"}, ""},
		{"static, for somebody else", "s3cret", []string{"vault"}, "", nil, invalid},
		{"nonsense", "nonsense", nil, "", nil, invalid},
		{"changed", mine[:len(mine)-8] + "AAAAAAAA", nil, "", nil, "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]"},
	}
	for _, tt := range tests {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: tt.token, Audiences: tt.audiences}}
		review, err := apitest.Typed(t, s).AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := review.Status
		if got.Authenticated != (tt.user != "") || got.User.Username != tt.user || got.Error != tt.err {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if diff := cmp.Diff(tt.got, got.Audiences); diff != "" {
			t.Errorf("%s: audiences: %s", tt.name, diff)
		}
	}
	if apitest.WhoAmI(t, s, foreign) != nil || apitest.WhoAmI(t, s, both) == nil {
		t.Error("the API believes other tokens than those that are for it")
	}
	want := &authenticationv1.UserInfo{Username: "eve", UID: "7", Groups: []string{"dev", "ops", "system:authenticated"}}
	if diff := cmp.Diff(want, apitest.WhoAmI(t, s, "s3cret")); diff != "" {
		t.Errorf("static: %s", diff)
	}
	if _, err := apitest.Bearing(t, s, "root").CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a static token of system:masters: %v", err)
	}
}
