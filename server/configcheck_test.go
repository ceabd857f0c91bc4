package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/tokens"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestConfigErrors(t *testing.T) {
	tests := []struct {
		name string
		c    Config
		has  string
	}{
		{"no port", Config{Listen: "localhost"}, "write HOST:PORT"},
		{"port is a word", Config{Listen: "127.0.0.1:https-alt-nope"}, "write HOST:PORT"},
		{"no such host", Config{Listen: "no.such.host.invalid:0"}, "write HOST:PORT"},
		{"name", Config{SANs: []string{"no spaces"}}, "write a DNS name"},
		{"DSN", Config{DSN: "oracle://u:s3cret@h/db"}, "write sqlite://"},
		{"controllers", Config{Controllers: []string{"nope"}}, "write *"},
		{"runtime config", Config{RuntimeConfig: map[string]string{"apps/v2": "true"}}, `version "apps/v2" is not known`},
		{"admission plugin", Config{EnableAdmissionPlugins: []string{"Nope", "Nada"}}, `plugin "Nope" is unknown; write names out of AlwaysAdmit`},
		{"admission plugin to leave out", Config{DisableAdmissionPlugins: []string{"Nope"}}, `Config.DisableAdmissionPlugins: plugin "Nope" is unknown`},
		{"admission plugin without its configuration", Config{EnableAdmissionPlugins: []string{"ImagePolicyWebhook"}}, "no config specified"},
		{"admission configuration", Config{AdmissionConfigFile: "/nowhere/config.yaml"}, "unable to read admission control configuration"},
		{"keep, without a group", Config{Keep: changelog.NewRetention(changelog.Rule{Resource: "deployments"})}, `Config.Keep: "deployments": write deployments.apps`},
		{"keep, singular", Config{Keep: changelog.NewRetention(changelog.Rule{Resource: "secret"})}, `"secret": write secrets`},
		{"keep, stored elsewhere", Config{Keep: changelog.NewRetention(changelog.Rule{Resource: "events.events.k8s.io"})}, `"events.events.k8s.io": write events`},
		{"leases wait for too long", Config{LeaseCommitDelay: time.Minute}, "Config.LeaseCommitDelay 1m0s: write a duration from 0 to 5s"},
		{"leases wait backwards", Config{LeaseCommitDelay: -time.Second}, "write a duration from 0 to 5s"},
		{"delay", Config{ShutdownDelay: time.Minute}, "Config.ShutdownTimeout"},
		{"negative", Config{RequestTimeout: -1}, "write a duration"},
		{"issuer", Config{Tokens: tokens.Options{Issuers: []string{""}}}, "write a URL"},
		{"issuer twice", Config{Tokens: tokens.Options{Issuers: []string{"a", "a"}}}, "twice"},
		{"issuer that is nearly a URL", Config{Tokens: tokens.Options{Issuers: []string{"https://a:port"}}}, "write a URL"},
		{"audience", Config{Tokens: tokens.Options{Audiences: []string{"a", ""}}}, "write what tokens are to be for"},
		{"life of tokens", Config{Tokens: tokens.Options{MaxExpiration: time.Minute}}, "at least 1h"},
		{"keys' URL", Config{Tokens: tokens.Options{JWKSURI: "http://a.example.com"}}, "write an https URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := New(tt.c).Open(t.Context())
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.has) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v", err)
			}
		})
	}
}
