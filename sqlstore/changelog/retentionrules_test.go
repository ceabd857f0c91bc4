package changelog_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestParseRules(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "[]",
		"deployments.apps=90d":               "[deployments.apps=90d]",
		"secrets=0":                          "[secrets=0]",
		"secrets=0s, pods = 0d":              "[secrets=0 pods=0]",
		"leases.coordination.k8s.io=5m":      "[leases.coordination.k8s.io=5m0s]",
		"configmaps=10":                      "[configmaps=10]",
		"pods=7d/20":                         "[pods=7d/20]",
		"*=1w":                               "[*=7d]",
		"*.apps=2w3d12h":                     "[*.apps=420h0m0s]",
		"# all\n*=7d  # a week\n\npods=1h\n": "[*=7d pods=1h0m0s]",
		"a-b.example.com=1d,,c=2":            "[a-b.example.com=1d c=2]",
		"*=200000d":                          "? a duration of more than 200 years: write one such as",
		"*=99999999999999999999d":            "? a duration of more than 200 years",
		"*=10000000h":                        "? no duration: write one such as 12h, 90d or 2w, or 0 to keep none",
		"pods":                               `? "pods": write RESOURCE=DURATION, RESOURCE=COUNT or RESOURCE=DURATION/COUNT, such as deployments.apps=90d`,
		"=7d":                                "? write RESOURCE=DURATION",
		"pods=":                              `? "pods=": "" is no duration`,
		"pods=-5":                            `? "-5" is no duration`,
		"pods=-5m":                           `? "-5m" is no duration`,
		"pods=5x":                            `? "5x" is no duration`,
		"pods=7d/":                           `? "" is no number of versions: write one above 0, such as pods=20`,
		"pods=7d/0":                          `? "0" is no number of versions`,
		"pods=/20":                           `? "" is no duration`,
		"pods=d":                             `? "d" is no duration`,
		"apps/deployments=1d":                `? "apps/deployments=1d": write the resource as deployments.apps`,
		"pods/status=5d":                     `? "pods/status=5d": a rule is for whole objects, with all subresources: write the resource as pods`,
		"deployments.apps/scale=5d":          `? subresources: write the resource as deployments.apps`,
		"\ufeff*=7d\npods=1h":                "[*=7d pods=1h0m0s]",
		"core/secrets=1d":                    `? write the resource as secrets`,
		"Deployment.apps=1d":                 `? write the resource in small letters and in the plural, such as deployments.apps`,
		"pods*=1d":                           `? write the resource as in deployments.apps or configmaps, *.GROUP`,
		"pods=1d,pods=2d":                    `? "pods=2d": there is another rule for pods: write one, such as pods=7d/20`,
	} {
		rules, err := ParseRules(text)
		got := fmt.Sprint(rules)
		if err != nil {
			got = "? " + err.Error()
		}
		if wrong := strings.HasPrefix(want, "? "); got != want && !wrong || wrong && (err == nil || !strings.Contains(err.Error(), want[2:]) || strings.Contains(got, "\n")) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		for _, r := range rules {
			if again, err := ParseRules(r.String()); err != nil || again[0] != r {
				t.Errorf("%s is read as %v, %v", r, again, err)
			}
		}
	}
}
