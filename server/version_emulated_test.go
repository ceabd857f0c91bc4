package server

import (
	"net/http"
	"testing"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/recordedtest"
)

// TestEmulationRecorded compares what an older release that is emulated answers with what kube-apiserver answers with the
// same flag: /version, fields of features that it does not have, versions that it stores, validation.
func TestEmulationRecorded(t *testing.T) {
	for _, release := range []string{"1.34", "1.35", "1.36"} {
		t.Run(release, func(t *testing.T) {
			file := "testdata/emulated/" + release + ".txt"
			if u := recordedtest.StartUpstream(t, "", "--emulated-version="+release, "--runtime-config=api/all=true"); u != nil {
				playAll(t, u.Admin, u.URL, file)
				return
			}
			emulate(t, release)
			s := start(t, Config{RuntimeConfig: map[string]string{"api/all": "true"}})
			playAll(t, apitest.Admin(t, s), s.URL(), file)
		})
	}
}

func playAll(t *testing.T, client *http.Client, url, file string) {
	for _, e := range recordedtest.Read(t, file) {
		e.Play(t, client, url)
	}
}

// TestEmulate: releases that cannot be emulated are refused, and what was set before does not stay.
func TestEmulate(t *testing.T) {
	defer func() { must(t, kind.Emulate(nil, nil)) }()
	for _, row := range []struct {
		emulated, compatible []string
		want                 string
	}{
		{[]string{"1.33"}, nil, "emulation version 1.33 is not between [1.34, 1.37.0]"},
		{[]string{"1.38"}, nil, "emulation version 1.38 is not between [1.34, 1.37.0]"},
		{[]string{"1.36.2"}, nil, "patch version not allowed, got: kube=1.36.2"},
		{[]string{"wardle=1.36"}, nil, "component not registered: wardle"},
		{[]string{"new"}, nil, `could not parse "new" as version`},
		{[]string{"1.35"}, []string{"1.36"}, "minCompatibilityVersion version 1.36 is not between [1.34, 1.35]"},
		{[]string{"kube=1.36"}, []string{"1.35"}, ""},
		{nil, []string{"1.37"}, ""},
		{nil, nil, ""},
	} {
		got := ""
		if err := kind.Emulate(row.emulated, row.compatible); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%v, %v: %q, want %q", row.emulated, row.compatible, got, row.want)
		}
	}
	if kind.Emulates() || kind.Effective().MinCompatibilityVersion().String() != "1.36" {
		t.Error(kind.Effective())
	}
}
